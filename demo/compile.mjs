import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const self = fileURLToPath(import.meta.url);
const root = dirname(dirname(self));
const cache = join(root, 'node_modules', '.cache', 'nestjs-lease');

/**
 * Compiles the library and the given folder into a cache, only what has changed, and returns where the folder went.
 * Not into dist: a build that somebody else is about to pack is left alone. A package.json there, with the name and
 * the exports of ours, makes `from 'nestjs-lease'` mean what it means to a user.
 */
export async function compile(folder) {
  const stale = ['lib', folder].flatMap((name) => [...sourcesIn(join(root, name))]).filter(isStale);
  if (stale.length > 0) {
    const { default: ts } = await import('typescript');
    for (const source of stale)
      write(outputOf(source), transpile(ts, readFileSync(source, 'utf8')));
  }
  const { name, type, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const compiled = JSON.stringify({ name, type, exports }).replaceAll('./dist/', './lib/');
  write(join(cache, 'package.json'), compiled);
  return join(cache, folder);
}

function* sourcesIn(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sourcesIn(path);
    else if (path.endsWith('.ts')) yield path;
  }
}

const outputOf = (source) => join(cache, relative(root, source).replace(/\.ts$/, '.js'));

function isStale(source) {
  const output = outputOf(source);
  if (!existsSync(output)) return true;
  const { mtimeMs } = statSync(output);
  return [source, self].some((path) => statSync(path).mtimeMs >= mtimeMs);
}

function transpile(ts, text) {
  const compilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    verbatimModuleSyntax: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    inlineSourceMap: true,
  };
  return ts.transpileModule(text, { compilerOptions }).outputText;
}

/** Whole or not at all: another run may be reading it. */
function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, text);
  renameSync(draft, path);
}
