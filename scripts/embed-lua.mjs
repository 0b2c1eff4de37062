/**
 * Puts lib/stores/redis/lua/*.lua, with the parts they include, into lib/stores/redis/scripts.ts, and those of others
 * into their own: a published package that has to find and read files beside its code breaks under bundlers. `--check`
 * only says whether these modules are up to date.
 */
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';

for (const owner of ['stores/redis', 'stores/redlock', 'fencing/redis']) embed(owner);

function embed(owner) {
  const folder = new URL(`../lib/${owner}/lua/`, import.meta.url);
  const module = new URL(`../lib/${owner}/scripts.ts`, import.meta.url);
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.lua'))
    .toSorted();
  const generated = render(files.map((file) => readScript(folder, file)));
  if (!process.argv.includes('--check')) {
    writeFileSync(module, generated);
    console.log(`embedded ${files.length} scripts of ${owner}`);
  } else if (generated !== readIfThere(module)) {
    console.error(`lib/${owner}/scripts.ts is not what the .lua files say: run \`npm run lua\`.`);
    process.exitCode = 1;
  }
}

function readScript(folder, file) {
  const name = file.slice(0, -'.lua'.length);
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name)) {
    throw new Error(`lua/${file}: the name of a script is in kebab-case.`);
  }
  const source = read(folder, file);
  return { name, source, sha1: createHash('sha1').update(source).digest('hex') };
}

/** With the parts that it includes, and those that they do. */
function read(folder, file) {
  return readFileSync(new URL(file, folder), 'utf8').replaceAll(
    /^ *--@ include ([a-z]+)\n/gm,
    (_, part) => read(folder, `parts/${part}.lua`),
  );
}

function render(scripts) {
  const properties = scripts.map(
    ({ name, source, sha1 }) => `  ${camelCase(name)}: {
    name: '${name}',
    sha1: '${sha1}',
    source: \`${source.replaceAll(/[\\`]|\$\{/g, '\\$&')}\`,
  },
`,
  );
  return `// Generated from lua/*.lua by \`npm run lua\`. Do not edit.

export interface LuaScript {
  readonly name: string;
  readonly sha1: string;
  readonly source: string;
}

export const scripts = {
${properties.join('')}} satisfies Record<string, LuaScript>;
`;
}

function camelCase(name) {
  return name.replaceAll(/-(.)/g, (_, letter) => letter.toUpperCase());
}

function readIfThere(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}
