import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Lets a program of an unpacked Debian run on this one: beside the libraries that came with it, and by their loader, because
 * a C library and its loader are of one version. A script takes the program's place and becomes it, under the same
 * process id; so one that starts another of the same folder, as initdb starts postgres, finds it.
 *
 * @param {string} root
 * @param {string} program - its path there
 */
export function makeRunnable(root, program) {
  const path = join(root, program);
  const folders = libraries(root);
  const loader = folders.flatMap((folder) => loadersIn(folder))[0];
  if (loader === undefined) throw new Error(`There is no loader of programs in ${root}.`);
  const itself = `${path}.elf`;
  renameSync(path, itself);
  const started = `${loader} --library-path ${folders.join(':')} ${itself}`;
  writeFileSync(path, `#!/bin/sh\nexec ${started} "$@"\n`, { mode: 0o755 });
}

/** Those of the machine's kind; Debian names them after it, as in lib/x86_64-linux-gnu. */
function libraries(root) {
  return ['lib', 'usr/lib']
    .map((folder) => join(root, folder))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
    .filter((folder) => /-linux-gnu\w*$/.test(folder));
}

const loadersIn = (folder) =>
  readdirSync(folder)
    .filter((name) => /^ld(-linux.*|64)\.so\.\d+$/.test(name))
    .map((name) => join(folder, name));
