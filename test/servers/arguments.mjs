import { parseArgs } from 'node:util';

export const USAGE = `npm run servers -- [names] [options]
  names      servers whose name contains one of them, such as redis, valkey-sid, trixie; all without
  --list     what there is
  --fresh    fetches the packages again, also those that were fetched before
  --write    puts the results of these servers on the page docs/servers.md; a run of all does so by itself`;

export function readArguments() {
  const { values, positionals: names } = parseArgs({
    allowPositionals: true,
    options: {
      list: { type: 'boolean', default: false },
      fresh: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const { list: isList, fresh: isFresh, help, write } = values;
  return { names, isList, isFresh, help, isWritten: write || names.length === 0 };
}
