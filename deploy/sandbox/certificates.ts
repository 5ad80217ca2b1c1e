import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files in PEM. */
export interface CertificateFiles {
  ca: string;
  cert: string;
  key: string;
}

const day = 24 * 60 * 60 * 1000;
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/**
 * A certificate authority and a server certificate for these names and addresses, made once and kept in `dir`:
 * restarts reuse both, so clients that trust the authority go on trusting it. The server's is renewed when the
 * addresses changed or it has less than a month left.
 */
export async function keepCertificate(
  dir: string,
  options: { ca: string; names: string[]; ips: string[] },
): Promise<CertificateFiles> {
  mkdirSync(dir, { recursive: true });
  const files = { ca: join(dir, 'ca.pem'), cert: join(dir, 'server.pem'), key: join(dir, 'server.key') };
  const caKey = join(dir, 'ca.key');
  const authority = await keepAuthority(files.ca, caKey, options.ca);
  if (!serves(files, authority, options)) await issue(files, caKey, options);
  return files;
}

async function keepAuthority(file: string, keyFile: string, name: string): Promise<X509Certificate> {
  if (existsSync(file) && existsSync(keyFile)) {
    const kept = new X509Certificate(readFileSync(file));
    if (Date.parse(kept.validTo) > Date.now() + 365 * day) return kept;
  }
  const x509 = await loadX509();
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const { KeyUsageFlags } = x509;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    ...validity(10 * 365 * day),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  await writeKey(keyFile, keys.privateKey);
  writeFileSync(file, `${certificate.toString('pem')}\n`);
  return new X509Certificate(readFileSync(file));
}

function serves(
  files: CertificateFiles,
  authority: X509Certificate,
  wanted: { names: string[]; ips: string[] },
): boolean {
  if (!existsSync(files.cert) || !existsSync(files.key)) return false;
  const kept = new X509Certificate(readFileSync(files.cert));
  return (
    kept.verify(authority.publicKey) &&
    kept.checkPrivateKey(createPrivateKey(readFileSync(files.key))) &&
    Date.parse(kept.validTo) > Date.now() + 30 * day &&
    wanted.names.every((name) => kept.checkHost(name) !== undefined) &&
    wanted.ips.every((ip) => kept.checkIP(ip) !== undefined)
  );
}

async function issue(
  files: CertificateFiles,
  caKeyFile: string,
  options: { names: string[]; ips: string[] },
): Promise<void> {
  const x509 = await loadX509();
  const { KeyUsageFlags } = x509;
  const issuer = new x509.X509Certificate(readFileSync(files.ca, 'utf8'));
  const pkcs8 = createPrivateKey(readFileSync(caKeyFile)).export({ type: 'pkcs8', format: 'der' });
  const signingKey = await crypto.subtle.importKey('pkcs8', new Uint8Array(pkcs8), algorithm, false, ['sign']);
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: `CN=${options.names[0] ?? options.ips[0]}`,
    issuer: issuer.subject,
    ...validity(365 * day),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        ...options.names.map((value) => ({ type: 'dns' as const, value })),
        ...options.ips.map((value) => ({ type: 'ip' as const, value })),
      ]),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  await writeKey(files.key, keys.privateKey);
  writeFileSync(files.cert, `${certificate.toString('pem')}\n`);
}

/** A day of slack at the beginning, for clocks that differ between machines and guests. */
function validity(ms: number): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + ms) };
}

async function writeKey(file: string, key: CryptoKey): Promise<void> {
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', key));
  const pem = createPrivateKey({ key: der, type: 'pkcs8', format: 'der' }).export({ type: 'pkcs8', format: 'pem' });
  writeFileSync(file, pem, { mode: 0o600 });
}

/** Only when something is to be made, since it costs a restart time. The library's injector wants the Reflect polyfill first. */
async function loadX509(): Promise<typeof import('@peculiar/x509')> {
  await import('reflect-metadata');
  return import('@peculiar/x509');
}
