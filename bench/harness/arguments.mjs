import { parseArgs } from 'node:util';

export const USAGE = `npm run bench -- [options]
  --quick              a rough look in under a minute on a quiet machine; writes no report
  --write              writes the report all the same
  --only <text>        scenarios whose name contains it; writes no report
  --contestant <text>  contestants whose name contains it, and the floors; writes no report
  --also <file>        one more contestant, see contestants/index.mjs; writes no report`;

export function readArguments() {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      contestant: { type: 'string' },
      also: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const { quick: isQuick, only, contestant, also, help, write } = values;
  const isWhole = !isQuick && !only && !contestant && !also;
  return { isQuick, only, contestant, also, help, isWritten: write || isWhole };
}
