import { createHash } from 'node:crypto';
import { scripts } from '../../lib/stores/redlock/scripts.js';
import { bulk, startFakeRedis, type FakeRedis, type RedisCommand } from './fake-redis.js';

type Name = keyof typeof scripts;

/** What a node says to a script, as bytes of the protocol. `undefined`: yes. */
export type Lie = (script: Name, command: RedisCommand) => string | undefined;

export interface LyingNode extends FakeRedis {
  lie: Lie;
  /** What it says to SCAN. */
  scan: () => string;
  /** How often a script was run. */
  count(script: Name): number;
}

const bySha = new Map(Object.entries(scripts).map(([name, { sha1 }]) => [sha1, name as Name]));

const scriptOf = ([name, script = '']: RedisCommand): Name | undefined => {
  if (name === 'EVALSHA') return bySha.get(script);
  if (name !== 'EVAL') return undefined;
  return bySha.get(createHash('sha1').update(script).digest('hex'));
};

/** A node that votes, and says yes to everybody and everything, or what it is told to say. */
export async function startLyingNode(): Promise<LyingNode> {
  const run = createHash('sha1').update(`${Math.random()}`).digest('hex');
  const node = { lie: (() => undefined) as Lie, scan: () => `*2\r\n${bulk('0')}*0\r\n` };
  const answer = (command: RedisCommand): string | undefined => {
    if (command[0] === 'SCAN') return node.scan();
    const script = scriptOf(command);
    return script && (node.lie(script, command) ?? yesTo(script, command, run));
  };
  const fake = await startFakeRedis(answer);
  const count = (script: Name): number =>
    fake.commands.filter((command) => scriptOf(command) === script).length;
  return Object.assign(node, fake, { count });
}

/** An array of texts and numbers, as scripts answer. */
export const reply = (...fields: readonly (string | number)[]): string =>
  `*${fields.length}\r\n${fields.map((one) => (typeof one === 'number' ? `:${one}\r\n` : bulk(one))).join('')}`;

function yesTo(script: Name, [, , keys]: RedisCommand, run: string): string {
  const now = Date.now();
  const yes = {
    admit: () => reply(now, 1, 0),
    claim: () => reply(now, 1, `${now * 1_000}`, '0'),
    heal: () => reply(now, 1, 0),
    inspect: () => reply(now, 1, 0),
    look: () => reply(now, run, 1, 0, '0', 60_000),
    release: () => reply(now, 1, 0),
    renew: () => reply(now, -1, ...Array.from({ length: Number(keys) - 1 }, () => 1)),
    settle: () => reply(now, 1, 0),
  } satisfies Record<Name, () => string>;
  return yes[script]();
}
