/**
 * `npm run servers`: the specs of each store on other versions of its server than the one that is installed, and on others
 * that speak its language, fetched as packages of several Debian suites. See docs/servers.md.
 */
import { readArguments, USAGE } from './arguments.mjs';
import { LINE_UP } from './line-up.mjs';
import { tablesOf, write } from './report.mjs';
import { stopRunning, tryOut } from './try-out.mjs';

const options = readArguments();
const isWanted = ({ id }) => !options.names.length || options.names.some((it) => id.includes(it));
const servers = LINE_UP.filter(isWanted);

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    stopRunning();
    process.exit(130);
  });
}

async function run() {
  const results = [];
  const troubles = [];
  for (const server of servers) {
    try {
      const result = await tryOut(server, options);
      results.push(result);
      troubles.push(...result.failed.map((what) => `${server.id}: ${what}`));
    } catch (error) {
      troubles.push(`${server.id}: not tried. ${error.message}`);
    }
  }
  console.log(`\n${tablesOf(results).join('\n\n')}\n`);
  if (options.isWritten) write(results);
  for (const trouble of troubles) console.error(trouble);
  if (troubles.length > 0) process.exitCode = 1;
}

if (options.help) console.log(USAGE);
else if (options.isList) console.log(servers.map(({ id }) => id).join('\n'));
else if (servers.length === 0) {
  console.error(`No server is named so. There are: ${LINE_UP.map(({ id }) => id).join(', ')}.`);
  process.exitCode = 1;
} else await run();
