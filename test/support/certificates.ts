import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate of 127.0.0.1, for a server or a client, and who signed it; each also as a file. */
export interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  file(name: 'ca' | 'cert' | 'key'): string;
  remove(): void;
}

/** Made by openssl for one test, good for a day, signed by an authority that nobody else knows. */
export function makeCertificates(): Certificates {
  const dir = mkdtempSync(join(tmpdir(), 'nestjs-lease-tls-'));
  const file = (name: string): string => join(dir, `${name}.pem`);
  const openssl = (...args: string[]): void =>
    void execFileSync(process.env['OPENSSL'] ?? 'openssl', args, { cwd: dir, stdio: 'pipe' });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...curve,
    '-days',
    '1',
    '-subj',
    '/CN=test authority',
    '-keyout',
    'ca-key.pem',
    '-out',
    'ca.pem',
  );
  openssl('req', ...curve, '-subj', '/CN=test', '-keyout', 'key.pem', '-out', 'request.pem');
  writeFileSync(
    file('extensions'),
    'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n',
  );
  openssl(
    'x509',
    '-req',
    '-in',
    'request.pem',
    '-CA',
    'ca.pem',
    '-CAkey',
    'ca-key.pem',
    '-CAcreateserial',
    '-days',
    '1',
    '-extfile',
    'extensions.pem',
    '-out',
    'cert.pem',
  );
  const read = (name: string): string => readFileSync(file(name), 'utf8');
  return {
    ca: read('ca'),
    cert: read('cert'),
    key: read('key'),
    file,
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}
