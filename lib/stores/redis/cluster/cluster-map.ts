import { NOT_A_CLUSTER } from '../../../lease.messages.js';
import type { RedisLink } from '../redis-link.js';
import { splitAddress } from './cluster-connection.js';
import { SLOTS } from './slot.js';

/** Which node has which slots, as one of them says. */
export interface ClusterMap {
  /** By slot, as `host:port`. */
  readonly owners: (string | undefined)[];
  /** Whether the node that said it is in a state to. */
  readonly isWell: boolean;
  /** Grows with every failover: who says the highest knows best. */
  readonly epoch: number;
}

/** Asks a node. */
export async function surveyedBy(
  link: RedisLink,
  address: string,
  mapped: (address: string) => string,
): Promise<ClusterMap> {
  const { client, silence } = link;
  try {
    const [info, slots] = await Promise.all([
      silence.during(client.cluster('INFO') as Promise<unknown>),
      silence.during(client.cluster('SLOTS') as Promise<unknown>),
    ]);
    const isWell = /^cluster_state:ok/m.test(String(info));
    const epoch = Number(/^cluster_current_epoch:(\d+)/m.exec(String(info))?.[1] ?? 0);
    return { owners: ownersIn(slots, address, mapped), isWell, epoch };
  } catch (error) {
    if (error instanceof Error && error.message.includes('cluster support disabled')) {
      throw new Error(NOT_A_CLUSTER(address), { cause: error });
    }
    throw error;
  }
}

function ownersIn(
  reply: unknown,
  saidBy: string,
  mapped: (address: string) => string,
): (string | undefined)[] {
  const owners = Array.from<string | undefined>({ length: SLOTS });
  for (const range of Array.isArray(reply) ? (reply as unknown[]) : []) {
    if (!Array.isArray(range)) continue;
    const [from, to, primary] = range as unknown[];
    if (!isSlot(from) || !isSlot(to) || !Array.isArray(primary)) continue;
    owners.fill(mapped(addressOf(primary[0], primary[1], saidBy)), from, to + 1);
  }
  return owners;
}

const isSlot = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < SLOTS;

/** A node that does not know what it is called means: as you reached me. */
function addressOf(host: unknown, port: unknown, saidBy: string): string {
  return `${typeof host === 'string' && host !== '' ? host : splitAddress(saidBy).host}:${Number(port)}`;
}

/** `MOVED` and `ASK` say where else a command belongs; `TRYAGAIN` that a slot is on its way. None of them was executed. */
export interface Redirection {
  readonly how: 'MOVED' | 'ASK' | 'TRYAGAIN';
  readonly address: string | undefined;
}

export function redirectionIn(error: unknown, saidBy: string): Redirection | undefined {
  if (!(error instanceof Error && error.name === 'ReplyError')) return undefined;
  if (error.message.startsWith('TRYAGAIN')) return { how: 'TRYAGAIN', address: undefined };
  const match = /^(MOVED|ASK) \d+ (\S*):(\d+)$/.exec(error.message);
  if (match === null) return undefined;
  const [, how, host, port] = match;
  return { how: how as 'MOVED' | 'ASK', address: addressOf(host, port, saidBy) };
}
