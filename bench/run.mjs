/** `npm run bench`: see README.md beside this file. */
import { performance } from 'node:perf_hooks';
import { readArguments, USAGE } from './harness/arguments.mjs';
import { Bench } from './harness/bench.mjs';
import { stopAllWorkers } from './harness/fleet.mjs';
import { prepare } from './harness/prepare.mjs';
import { stopAllServers } from './harness/servers.mjs';
import { machine } from './report/machine.mjs';
import { section } from './report/markdown.mjs';
import { summary, write } from './report/write.mjs';
import { scenarios } from './scenarios/index.mjs';

const options = readArguments();
if (options.help) {
  console.log(USAGE);
  process.exit();
}

const stopEverything = () => {
  stopAllWorkers();
  return stopAllServers();
};
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, async () => {
    await stopEverything();
    process.exit(130);
  });
}

const start = performance.now();
const secondsSince = (moment) => (performance.now() - moment) / 1e3;

async function run() {
  prepare();
  const bench = await Bench.create(options);
  const { isQuick } = options;
  const report = { machine: machine(), scenarios, results: {}, overlaps: bench.overlaps, isQuick };
  for (const scenario of scenarios) {
    if (!scenario.id.includes(options.only)) continue;
    if (scenario.isLong && isQuick && !options.only) continue;
    const began = performance.now();
    report.results[scenario.id] = await scenario.run(bench);
    await bench.stop();
    console.log(`${section(scenario, report.results[scenario.id])}\n`);
    console.log(`(${scenario.id}: ${secondsSince(began).toFixed(1)} s)\n`);
  }
  console.log(`${summary(report)}\n\n${secondsSince(start).toFixed(0)} s in all`);
  if (options.isWritten) write({ ...report, seconds: secondsSince(start) });
  for (const { name, kind, overlaps, where } of bench.overlaps) {
    console.error(`OVERLAP: ${name} (${kind}) had ${overlaps} holds at the same time in ${where}.`);
    // A peer's is reported; ours, or a floor's, fails the run.
    if (kind !== 'peer') process.exitCode = 1;
  }
}

try {
  await run();
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await stopEverything();
}
