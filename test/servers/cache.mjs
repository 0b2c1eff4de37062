import { existsSync, lstatSync, mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { unpackPackages } from './debian-packages.mjs';
import { makeRunnable } from './own-root.mjs';

/**
 * Where servers are kept between runs. Not in the home folder: root's is closed to the user that PostgreSQL runs as.
 * What is in it is executed, so it must be nobody else's.
 */
export function cacheFolder() {
  const uid = process.getuid?.() ?? 0;
  const folder = process.env.SERVERS_CACHE || join(tmpdir(), `nestjs-lease-servers-${uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const { uid: owner, mode } = lstatSync(realpathSync(folder));
  if (owner !== uid || (mode & 0o022) !== 0) {
    throw new Error(
      `${folder} belongs to somebody else, or others may write to it. Remove it, or name another folder in SERVERS_CACHE.`,
    );
  }
  return realpathSync(folder);
}

/** The paths of its programs, fetched if they are not there yet, or again if `isFresh`. */
export function programsOf(server, { isFresh }) {
  const root = join(cacheFolder(), server.id);
  const isWhole = join(root, '.whole');
  if (isFresh || !existsSync(isWhole)) {
    rmSync(root, { recursive: true, force: true });
    unpackPackages({ ...server, into: root, scratch: `${root}.fetching` });
    for (const program of server.programs) makeRunnable(root, program);
    writeFileSync(isWhole, '');
  }
  return server.programs.map((program) => join(root, program));
}
