/**
 * A process that holds a lease and blocks its own event loop. Reads one word a line and says what came of it as JSON,
 * one a line: `block <ms>` blocks, then looks at once, in the same breath; `act` acts as the owner if it may;
 * `release` gives the lease back; `close` closes the store and nothing else.
 *
 * node blocking-holder.mjs <compiled library> <store, as JSON: { file, name, args }> <key> <ttl> [<hungAfter> [<module of the store in the thread>]]
 */
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [, , dir, plan, key, ttl, hungAfter, threadModule] = process.argv;
const load = (file) => import(pathToFileURL(`${dir}/${file}`).href);
const { LeaseEngine } = await load('lease/lease-engine.js');
const { file, name, args: given } = JSON.parse(plan);
const { [name]: Store } = await load(file);

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const store = new Store(...given);
if (threadModule) {
  const { args } = store.thread();
  const base = pathToFileURL(`${dir}/${file}`).href;
  store.thread = () => ({ module: threadModule, export: 'ThreadStore', args: [base, ...args] });
}
const engine = new LeaseEngine({
  store,
  namespace: 'lease',
  instance: `holder:${process.pid}`,
  ttl: Number(ttl),
  wait: 0,
  ...(hungAfter ? { renewInThread: { hungAfter: Number(hungAfter) } } : {}),
});
engine.events.warnings.subscribe((message) => say({ said: 'warned', message }));
engine.events.all.subscribe(({ type, lateMs }) => {
  if (type === 'renewed' || type === 'lagging') say({ said: type, lateMs });
});
const lease = await engine.acquire(key);
const { fence } = lease;
lease.signal.addEventListener('abort', () =>
  say({ said: 'lost', reason: lease.signal.reason.reason }),
);
say({ said: 'acquired', fence });

for await (const line of createInterface({ input: process.stdin })) {
  const [word, ms] = line.split(' ');
  if (word === 'block') {
    say({ said: 'blocked' });
    const until = performance.now() + Number(ms);
    while (performance.now() < until);
    say({ said: 'woke', isHeld: lease.isHeld, fence });
  }
  if (word === 'act') say(lease.isHeld ? { said: 'acted', fence } : { said: 'refrained' });
  if (word === 'release') {
    say({ said: await lease.release() });
    await engine.close(0, 0);
    await store.close();
  }
  if (word === 'close') {
    await store.close();
    say({ said: 'closed' });
  }
}
