import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { benchFolder } from '../harness/library.mjs';
import { chart } from './chart.mjs';
import { machineSection } from './machine.mjs';
import { section, table } from './markdown.mjs';
import { peersAhead } from './peers-ahead.mjs';
import { targets } from './targets.mjs';

/** RESULTS.md, results.svg and results.json, from the figures of one run. */
export function write({ machine, scenarios, results, overlaps, seconds, isQuick }) {
  const file = (name, text) => writeFileSync(join(benchFolder, name), text);
  file(
    'results.json',
    `${JSON.stringify({ machine, seconds, isQuick, overlaps, results }, null, 1)}\n`,
  );
  file('results.svg', chart({ subtitle: subtitle(machine), panels: panels(results) }));
  file('RESULTS.md', markdown({ machine, scenarios, results, overlaps, seconds, isQuick }));
}

export function summary({ results, overlaps }) {
  return [targetsSection(results), peersSection(results), overlapsSection(overlaps)].join('\n\n');
}

function markdown({ machine, scenarios, results, overlaps, seconds, isQuick }) {
  const how = `Written by \`npm run bench\`${isQuick ? ' with `--quick`, which is rough' : ''} in ${Math.round(seconds)} s; what is measured and how is in [README.md](README.md).`;
  return `${[
    '# Results',
    how,
    machineSection(machine),
    '![Time as a ratio to the raw floor](results.svg)',
    'Ratios are medians over rounds, each to the floor of the same round; p10–p90 is where four fifths of the rounds lie.',
    summary({ results, overlaps }),
    ...scenarios.filter(({ id }) => id in results).map((one) => section(one, results[one.id])),
  ].join('\n\n')}\n`;
}

function targetsSection(results) {
  const rows = targets(results).map(({ what, target, figure, spread, verdict }) => [
    what,
    target,
    figure,
    spread,
    verdict,
  ]);
  return `## Targets\n\n${table({ columns: ['', 'target', 'measured', 'p10–p90', ''], rows })}`;
}

function peersSection(results) {
  const ahead = peersAhead(results);
  if (ahead.length === 0) return '## Where a peer is ahead\n\nNowhere in this run.';
  const rows = ahead.map(({ what, peer, theirs, ours, isClear, why }) => [
    `${peer}: ${what}`,
    theirs,
    ours,
    isClear ? 'yes' : 'no, spreads meet',
    why,
  ]);
  const columns = ['', 'theirs', 'ours', 'clearly', 'why'];
  return `## Where a peer is ahead\n\nOurs is \`run()\` where there is a choice.\n\n${table({ columns, rows })}`;
}

function overlapsSection(overlaps) {
  const lines = overlaps.map(
    ({ name, overlaps, where }) => `- ${name}: ${overlaps} holds at the same time (${where})`,
  );
  return `## Overlapping holds\n\n${lines.length ? lines.join('\n') : 'None, by anybody, in any round.'}`;
}

const subtitle = ({ date, cores, processor, node, redis }) =>
  `${date} · ${cores} cores of ${processor} · Node ${node} · Redis ${redis} · lines are p10–p90 over the rounds`;

function panels(results) {
  const inverse = ({ median, p10, p90 }) => ({ median: 1 / median, p10: 1 / p90, p90: 1 / p10 });
  const all = [
    {
      title: 'One caller: acquire + release',
      about: 'Redis and Node on one core; the floor is raw SET NX + EVALSHA, without a fence',
      rows: results.sequential?.pinned,
    },
    {
      title: '100 keys at once',
      about: 'time per cycle; the same floor',
      rows: results['hundred-keys']?.map((row) => ({ ...row, ratio: inverse(row.ratio) })),
    },
    {
      title: '20 waiters for one key, in 4 processes',
      about: 'time per turn until all have had theirs; the floor is a raw push-woken fenced queue',
      rows: results.waiters?.four,
    },
  ];
  return all.filter(({ rows }) => rows?.length);
}
