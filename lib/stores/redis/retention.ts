import { createHash } from 'node:crypto';
import { scripts, type LuaScript } from './scripts.js';

type Scripts = typeof scripts;
const BY_DEFAULT = 'local RETENTION, KEEP, SAME = 86400000, 87400000, 7\n';
/** Stamps that have their first 7 digits in common are less than so many milliseconds apart. */
const NEAR = 1_000_000;

/**
 * The scripts for a store that remembers fences for so many milliseconds. Where that is long, a record is kept a
 * little longer, and its expiry not set anew by every grant.
 */
export function scriptsFor(retention: number): Scripts {
  const isLong = retention >= 10 * NEAR;
  const keep = isLong ? retention + NEAR : retention;
  const line = `local RETENTION, KEEP, SAME = ${retention}, ${keep}, ${isLong ? 7 : 16}\n`;
  if (line === BY_DEFAULT) return scripts;
  const retained = ({ name, source }: LuaScript): LuaScript => {
    const changed = source.replaceAll(BY_DEFAULT, line);
    return { name, source: changed, sha1: createHash('sha1').update(changed).digest('hex') };
  };
  const entries = Object.entries(scripts).map(([name, script]) => [name, retained(script)]);
  return Object.fromEntries(entries) as Scripts;
}
