/**
 * One lease and its stores know nothing of what is built on them: no import of a higher layer, nor of Nest, whose
 * exception classes they get from exceptions/. So they run in a simulation, without an application.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const lib = join(dirname(dirname(fileURLToPath(import.meta.url))), 'lib');
const lower = ['lease', 'stores'];
const higher =
  /^(?:decorators|election|http|fencing|health|dashboard|cli)\/|^lease\.(?:service|module)\b/;
const importOf = /\b(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g;

for (const file of lower.flatMap(typeScriptFiles)) {
  for (const [, specifier] of readFileSync(file, 'utf8').matchAll(importOf)) {
    const target = specifier.startsWith('.')
      ? relative(lib, resolve(dirname(file), specifier))
      : specifier;
    if (higher.test(target) || target.startsWith('@nestjs/')) {
      console.error(`lib/${relative(lib, file)} must not import ${target}`);
      process.exitCode = 1;
    }
  }
}

function typeScriptFiles(folder) {
  return readdirSync(join(lib, folder), { recursive: true })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join(lib, folder, file));
}
