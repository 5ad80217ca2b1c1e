import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { findSquidProgram } from '../../../activities/providers/host/squid-program.ts';
import { removeSharedMemory, serviceName } from '../../../activities/providers/host/squid-shared-memory.ts';
import { accepts } from '../../../activities/providers/host/squid-start.ts';

/** The answer to one request, as text. */
export interface Answer {
  status: number;
  body: string;
}

/** Sends one request on a connection of its own, written by hand: an HTTP client would tidy it up. */
export function ask(squid: string, line: string, localAddress = '127.0.0.1'): Promise<Answer> {
  const socket = connect({ host: squid, port: 3128, localAddress });
  socket.write(`${line} HTTP/1.1\r\nHost: whatever\r\nConnection: close\r\n\r\n`);
  return new Promise((resolve, reject) => {
    let text = '';
    const answer = () => {
      socket.destroy();
      resolve({ status: Number(text.split(' ')[1]), body: text });
    };
    socket.setEncoding('utf8').on('data', (data: string) => {
      text += data;
      if (/^HTTP\S+ 200 Connection established/.test(text)) answer();
    });
    socket.on('end', answer).on('error', reject);
  });
}

export interface RunningSquid {
  /** What it has written to stderr so far. */
  log(): string;
  stop(): Promise<void>;
}

/** Runs Squid with this configuration until `stop`; resolves once it accepts connections on port 3128 of the address. */
export async function startSquid(text: string, address: string): Promise<RunningSquid> {
  const dir = await mkdtemp(join(tmpdir(), 'squid-conf-'));
  const conf = join(dir, 'squid.conf');
  await writeFile(conf, text);
  const program = await findSquidProgram('squid');
  const process = spawn(program, ['-N', '-f', conf, '-n', serviceName(conf)], { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  process.stderr.setEncoding('utf8').on('data', (data: string) => {
    log += data;
  });
  while (!(await accepts(address, 3128))) {
    expect(process.exitCode, log).toBeNull();
    await sleep(20);
  }
  await removeSharedMemory(conf);
  return {
    log: () => log,
    async stop() {
      if (process.exitCode === null && process.kill('SIGKILL')) await once(process, 'exit');
      await rm(dir, { recursive: true, force: true });
    },
  };
}
