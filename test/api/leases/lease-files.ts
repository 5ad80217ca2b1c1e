import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A path for a lease file in a folder of its own, which is removed after the test. */
export function temporaryLeaseFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'leases-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'leases.db');
}
