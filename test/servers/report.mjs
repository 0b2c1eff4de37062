import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { table } from '../../bench/report/markdown.mjs';
import { LINE_UP } from './line-up.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const KEPT = join(here, 'results.json');
const PAGE = join(here, '..', '..', 'docs', 'servers.md');
const [BEGIN, END] = ['<!-- npm run servers: begin -->', '<!-- npm run servers: end -->'];

/** Tables of these results, one for each kind of server. */
export function tablesOf(results) {
  const known = LINE_UP.flatMap((server) => {
    const result = results.find(({ id }) => id === server.id);
    return result === undefined ? [] : [{ server, result }];
  });
  const kinds = [...new Set(known.map(({ server }) => server.kind))];
  return kinds.map((kind) =>
    section(
      kind,
      known.filter((one) => one.server.kind === kind),
    ),
  );
}

/** Keeps what is known of other servers, from earlier runs. */
export function write(results) {
  const before = existsSync(KEPT) ? JSON.parse(readFileSync(KEPT, 'utf8')) : [];
  const all = LINE_UP.flatMap(
    ({ id }) => results.find((one) => one.id === id) ?? before.find((one) => one.id === id) ?? [],
  );
  writeFileSync(KEPT, `${JSON.stringify(all, null, 1)}\n`);
  const page = readFileSync(PAGE, 'utf8');
  const [head, tail] = [page.split(BEGIN)[0], page.split(END)[1]];
  writeFileSync(
    PAGE,
    [head, BEGIN, '\n\n', tablesOf(all).join('\n\n'), '\n\n', END, tail].join(''),
  );
}

function section(kind, tried) {
  const groups = [...new Set(tried.flatMap(({ server }) => Object.keys(server.groups)))];
  const columns = ['', 'version', 'Debian', ...groups, 'date'];
  const rows = tried.map(({ server, result }) => [
    server.name,
    result.version,
    server.suites.at(-1),
    ...groups.map((group) => cell(result.groups[group])),
    result.date,
  ]);
  return `## ${kind}\n\n${table({ columns, rows })}`;
}

/** Those that passed at a second try only are told: see test/support/retry-real-servers.ts. */
function cell(count) {
  if (count === undefined) return '';
  const { passed, all, again } = count;
  return `${passed} of ${all}${again > 0 ? ` (${again} at a second try)` : ''}`;
}
