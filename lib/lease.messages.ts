/** Every sentence a person may read. An error says what happened, to which key, and what can be done. */

/** A URL in the wrong place brings its password along (rule 15). */
const withoutPassword = (text: string): string => text.replace(/(\w:\/\/)\S*@/g, '$1…@');

const show = (value: unknown): string => {
  if (typeof value === 'string') {
    const text = withoutPassword(value);
    return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
  }
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'object' && value !== null)
    return `an ${Array.isArray(value) ? 'array' : 'object'}`;
  return String(value);
};

// — input

export const BAD_DURATION = (option: string, value: unknown): string =>
  `"${option}" is ${show(value)}; it must be a number of milliseconds or a number with a unit: '250ms', '10s', '5m', '2h', '1d'.`;

export const BAD_DURATION_RANGE = (
  option: string,
  value: unknown,
  min: number,
  max: number,
): string => `"${option}" is ${show(value)}; it must be from ${min} ms to ${max} ms.`;

export const BAD_KEY = (what: string, key: unknown, why: string): string =>
  `The ${what} ${show(key)} ${why}. A ${what} is a string of 1 to 512 bytes without control characters.`;

export const EMPTY_KEYS = (): string => 'The list of keys is empty; name at least one key.';

export const BAD_NAMESPACE = (namespace: unknown): string =>
  `"namespace" is ${show(namespace)}; it must be 1 to 100 letters, digits and _ . : -, and not end in ":election", where leaderships are kept.`;

export const BAD_OPTION = (option: string, value: unknown, expected: string): string =>
  `"${option}" is ${show(value)}; it must be ${expected}.`;

export const BAD_OPTIONS = (value: unknown): string =>
  `The options are ${show(value)}; they must be an object.`;

export const UNKNOWN_OPTION = (option: string, known: readonly string[]): string =>
  `There is no option "${option}". Options are: ${known.join(', ')}.`;

export const NO_PERMITS = (store: string): string =>
  `"permits" above 1 is not possible with the store "${store}".`;

export const NOT_OF_THIS_STORE = (option: string, store: string): string =>
  `"${option}" is not possible with the store "${store}".`;

export const NO_TEST_RUNNER = (): string =>
  'describeLeaseStore() found no test runner: pass it { describe, it } of the one you use, such as node:test.';

export const ONCE_ON_REENTRY = (key: string, once: string): string =>
  `"${key}" is held by this very call already, so a new unit of work (once: ${show(once)}) cannot begin inside it. Use another key for it.`;

export const PERMITS_ON_REENTRY = (key: string, held: number, asked: number): string =>
  `"${key}" is held by this very call as one of ${held} permits; it cannot be entered again as one of ${asked}. Use another key for it.`;

// — refusals and losses

export const LEASE_HELD = (key: string, retryAfterMs: number | undefined): string =>
  `"${key}" is held by somebody else${retryAfterMs === undefined ? '' : `; it can be free in ${retryAfterMs} ms`}.`;

export const LEASE_DONE = (key: string, once: string): string =>
  `"${once}" of "${key}" is done already.`;

const WHY_LOST = {
  expired: 'it was not renewed in time',
  taken: 'the store says that it is not ours any more',
  suspended: 'the machine was suspended',
  'max-hold': 'it was held for as long as maxHold allows',
} as const;

export const LEASE_LOST = (key: string, reason: keyof typeof WHY_LOST | undefined): string =>
  `The lease on "${key}" is over: ${reason === undefined ? 'it was released' : WHY_LOST[reason]}. Stop, and do not write.`;

export const LEASE_STORE_UNAVAILABLE = (key: string, store: string): string =>
  `The ${store} lease store did not say whether "${key}" is free. Nothing was run.`;

export const NOT_GRANTED_CLOSING = (key: string): string =>
  `"${key}" was not granted: the application is shutting down. Nothing was run.`;

export const NOT_LEADER = (group: string): string => `This instance does not lead "${group}".`;

export const STALE_FENCE = (resource: string, fence: number, highest: number | undefined): string =>
  `The fence ${fence} is stale: "${resource}" has seen ${highest ?? 'a higher one'}. Somebody else owns it by now.`;

// — the store

export const NO_THREAD = (store: string): string =>
  `"renewInThread" is not possible with the ${store} store: it cannot be made a second time in a thread. Use RedisLeaseStore, or a store that has thread().`;

export const NOT_FOR_THREAD = (option: string): string =>
  `"renewInThread" is not possible with the option "${option}" of this Redis connection: a function or an object of a class cannot be sent to a thread. Give the store a URL, or options without it.`;

export const MAIN_THREAD_HANGS = (ms: number): string =>
  `The event loop has stood still for ${Math.round(ms)} ms: nothing is renewed until it runs.`;

export const NO_ANSWER = (ms: number): string =>
  `The lease store did not answer within ${Math.round(ms)} ms.`;

export const NO_TELLING = (store: string, answer: unknown): string =>
  `The ${store} lease store answered ${show(answer)}, from which nothing follows.`;

export const SLOW_GRANT = (ttl: number): string =>
  `The lease was granted so late that nothing of its ttl of ${ttl} ms could be trusted.`;

export const SHUTTING_DOWN = (): string => 'The application is shutting down.';

// — Redis

export const BAD_REDIS_CONNECTION = (value: unknown): string =>
  `RedisLeaseStore was given ${show(value)}; it needs a URL like redis://localhost:6379, ioredis options, or an ioredis client. Is the environment variable set?`;

export const BAD_REDIS_URL = (): string =>
  'RedisLeaseStore was given a string that is no Redis URL; it must begin with redis:// or rediss://, or be the path of a socket.';

export const NOT_CONNECTED = (): string => 'There is no connection to Redis.';

export const BAD_REPLY = (command: string): string =>
  `Redis answered ${command} with something that is no answer to it. Is another program using the same keys?`;

export const CLAIM_TOO_LATE = (): string =>
  'The claim reached Redis after the time it was to be answered in; it was not executed.';

// — the log

export const MEMORY_STORE = (store: string): string =>
  `Leases are kept by the ${store} store: they protect this process only. Give LeaseModule a shared store before a second instance runs.`;

const because = (error: unknown): string => {
  const cause =
    error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `${error instanceof Error ? error.message : String(error)}${cause}`;
};

export const STORE_NOT_OPEN = (store: string, error: unknown): string =>
  `The ${store} lease store is not reachable: ${because(error)} Claims are refused as unavailable until it is.`;

export const RENEWAL_FAILED = (key: string, remainingMs: number, error: unknown): string =>
  `The lease on "${key}" could not be renewed: ${because(error)} It is trusted for ${Math.round(remainingMs)} ms more, and tried again until then.`;

export const LOOP_LAGS = (key: string, lateMs: number, remainingMs: number): string =>
  `The event loop was blocked: the lease on "${key}" was looked after ${Math.round(lateMs)} ms late and has ${Math.round(remainingMs)} ms of trust left. Move long synchronous work off the event loop, take a longer ttl, or renew from a thread of its own (renewInThread: true).`;

export const THREAD_ENDED = (cause: unknown): string =>
  `The thread that renews leases ended: ${because(cause)} The event loop renews them from now on; do not block it for long.`;

export const LEFT_TO_TTL = (keys: readonly string[]): string =>
  `Work under ${keys.map(show).join(', ')} did not stop in time. Its lease was not released, so that nobody works beside it; it ends by its ttl.`;

export const CAMPAIGN_FAILED = (group: string): string =>
  `The election of "${group}" met an error; this instance abstains and tries again.`;

export const NO_HEALTH = (ms: number): string =>
  `campaignWhen did not answer within ${Math.round(ms)} ms, which counts as no.`;

export const LEADER_STUCK = (group: string): string =>
  `Work of the leader of "${group}" goes on although this instance has stepped down and its signal has aborted. Nobody else is elected before it stops.`;

export const STORE_NOT_CLOSED = (store: string, error: unknown): string =>
  `The ${store} lease store could not be closed: ${because(error)}`;

export const HOOK_FAILED = (method: string): string => `${method} threw.`;

export const HOOK_NOT_STATIC = (method: string): string =>
  `${method} is never called: its provider is request-scoped or transient, and events belong to no request.`;

export const SKIPPED = (method: string, why: string): string => `${method} skipped: ${why}`;

export const SKIPPED_CLOSING = (): string => 'the application is shutting down.';

export const RAN_WITHOUT_LEASE = (method: string): string =>
  `${method} runs without its lease, as onUnavailable: 'run' allows: the store is unavailable.`;

// — decorators

export const MISSING_MODULE_HINT =
  'LeaseModule: @WithLease and @LeaderOnly need LeaseModule.forRoot() in the imports of the root module';

export const NOT_MANAGED = (method: string): string =>
  `${method} is under a lease, but its object was not made by Nest's injector (made with new, useFactory or useValue), so no lease can be taken. Nothing was run. Register the class itself as a provider, or call LeaseService.run().`;

export const NOT_A_METHOD = (decorator: string, name: string): string =>
  `@${decorator} on ${name}: it can only decorate a method.`;

export const SYNC_METHOD = (method: string): string =>
  `${method} is under a lease, but is synchronous: a lease is taken and given back over time. Make it async, or return a Promise, an Observable or an async generator.`;

export const PROMISED_GENERATOR = (): string =>
  'A method under a lease promised an async generator, which would run after the lease was given back. Nothing of it was run. Make the method itself an async generator.';

export const KEY_FUNCTION_THREW = (method: string): string =>
  `The key function of @WithLease on ${method} threw. Nothing was run; its error is the cause.`;

export const PARAMETER_WITHOUT_LEASE = (decorator: string, method: string): string =>
  `@${decorator}() in ${method} would never be filled: the method has no @WithLease or @LeaderOnly.`;

export const SAME_DEFAULT_KEY = (key: string): string =>
  `Two classes would share the lease "${key}", because both are named so and neither @WithLease names a key. Give each a key of its own.`;

export const BAD_DECORATOR_OPTION = (method: string, reason: string): string =>
  `${method}: ${reason}`;

// — PostgreSQL

export const BAD_POSTGRES_CONNECTION = (store: string, value: unknown): string =>
  `${store} was given ${show(value)}; it needs a URL like postgres://localhost:5432/app, options of pg, or a Pool of pg. Is the environment variable set?`;

export const BAD_POSTGRES_URL = (store: string): string =>
  `${store} was given a string that is no PostgreSQL URL; it must begin with postgres:// or postgresql://, or be the path of a socket.`;

export const BAD_POSTGRES_TABLE = (table: unknown): string =>
  `"table" is ${show(table)}; it must be the name of a table, or schema.table, of letters, digits, _ and $, each part at most 50 of them.`;

export const NO_POSTGRES = (): string => 'There is no connection to PostgreSQL.';

export const POSTGRES_SILENT = (ms: number): string =>
  `PostgreSQL did not answer within ${Math.round(ms)} ms; the connection was given up.`;

export const POSTGRES_SAID = (message: string, code: string): string =>
  `PostgreSQL said: ${message} (${code}).`;

export const POSTGRES_READ_ONLY = (): string =>
  'This PostgreSQL is read-only: a replica, or a primary that is to be one. Leases need the primary; with several hosts, a URL that leads to it.';

export const POSTGRES_NO_TABLE = (table: string): string =>
  `The table "${table}" of the lease store, or the one that belongs to it, does not exist. Run the SQL of postgresLeaseSql('${table}') in a migration, or leave createTable on.`;

export const POSTGRES_NO_RIGHT = (table: string, message: string): string =>
  `PostgreSQL said: ${message}. The lease store needs SELECT, INSERT, UPDATE and DELETE on its tables, and the right to create them unless postgresLeaseSql('${table}') was run by somebody else.`;

export const POSTGRES_CLAIM_LATE = (): string =>
  'The claim reached PostgreSQL after the time it was to be answered in; it was not executed.';

export const POSTGRES_CLAIM_CROWDED = (): string =>
  'Others claimed the same key all the time; PostgreSQL came to no answer in the time that was left.';

export const BAD_POSTGRES_ANSWER = (what: string): string =>
  `PostgreSQL answered ${what} with something that is no answer to it. Is another program using the same tables?`;

export const NO_TRANSACTION = (): string =>
  'assertHeld() was called outside of a transaction, or on a pool that takes another connection each time: it protects nothing there. Call it on the client of an open transaction.';

export const BAD_ISOLATION = (isolation: string): string =>
  `assertHeld() was called in a transaction of isolation ${show(isolation)}, which sees the lease as it was when the transaction began. Use READ COMMITTED, or guard the write with the fence.`;

export const BAD_LEASE = (value: unknown): string =>
  `assertHeld() was given ${show(value)} for a lease; it needs the Lease that acquire() or run() gave.`;

export const BAD_QUERYABLE = (value: unknown): string =>
  `assertHeld() was given ${show(value)} for a client; it needs something with query(text, values), in an open transaction.`;

export const POOLER_IN_BETWEEN = (): string =>
  'There is a pooler between PostgresAdvisoryLeaseStore and PostgreSQL; a lock of a session is not safe there. Connect to the server itself, or use PostgresLeaseStore.';

export const LISTEN_BEHIND_POOLER = (): string =>
  'There is a pooler between PostgresLeaseStore and PostgreSQL, behind which it does not listen: who waits for a lease polls. Turn "listen" off to say that you know, or connect to the server itself.';

export const SESSION_LOST = (): string =>
  'The session that held the locks is gone, and with it every lock.';

export const POSTGRES_NOT_FOR_THREAD = (option: string): string =>
  `"renewInThread" is not possible with the option "${option}" of this PostgreSQL connection: a function or an object of a class cannot be sent to a thread. Give the store a URL, or options without it.`;

// — etcd

export const BAD_ETCD_OPTIONS = (value: unknown): string =>
  `EtcdLeaseStore was given ${show(value)}; it needs options, at least { endpoints: 'http://localhost:2379' }.`;

export const BAD_ETCD_ENDPOINT = (): string =>
  'An endpoint of EtcdLeaseStore must be the client URL of a member, such as http://localhost:2379 or https://etcd-1:2379, and there must be one at least. A user and a password have options of their own. Is the environment variable set?';

export const BAD_ETCD_CREDENTIALS = (): string =>
  'EtcdLeaseStore needs both "username" and "password", as texts, or neither.';

export const BAD_ETCD_TLS = (option: string): string =>
  `"${option}" of EtcdLeaseStore must be PEM, as a text or a Buffer; "tls.cert" and "tls.key" go together.`;

export const ETCD_TLS_WITHOUT_HTTPS = (): string =>
  'EtcdLeaseStore was given "tls", but an endpoint that begins with http://, which would not use it.';

export const BAD_ETCD_PREFIX = (): string =>
  '"prefix" of EtcdLeaseStore must be a text without control characters.';

export const ETCD_CLOSED = (): string => 'The etcd lease store is closed.';

export const ETCD_NO_ANSWER = (host: string, ms: number): string =>
  `etcd at ${host} did not answer within ${Math.round(ms)} ms.`;

export const ETCD_NO_TIME = (): string => 'There was no time left to ask etcd.';

export const ETCD_UNREACHABLE = (host: string, error: Error): string =>
  `etcd at ${host} cannot be reached: ${(error as NodeJS.ErrnoException).code ?? error.message}.`;

export const ETCD_TOO_LONG = (host: string): string =>
  `${host} answered with more than etcd ever would.`;

export const ETCD_BAD_ANSWER = (host: string, status: number): string =>
  `${host} answered (HTTP ${status}) with something that is no answer of etcd. Is it the client URL of an etcd 3.4 or newer?`;

export const ETCD_SAYS = (message: string): string => `etcd refused: ${message.slice(0, 200)}.`;

export const ETCD_NOT_LET_IN = (username: string): string =>
  `etcd did not let the user "${username}" in: the name or the password is wrong.`;

export const ETCD_STRANGE_VALUE = (key: string): string =>
  `What etcd has under the names of the lease "${key}" is no lease. It is left alone, and the key cannot be claimed. Is another program using the same prefix?`;

export const ETCD_OTHER_CLUSTER = (key: string): string =>
  `A claim of "${key}" began at one etcd cluster and ended at another, and is given up. Do all the endpoints belong to one?`;

export const ETCD_RELEASE_IN_DOUBT = (key: string): string =>
  `The release of "${key}" had to be sent twice, and the second found nothing: the first may have freed it.`;

export const ETCD_NO_WATCH = (): string => 'etcd does not tell of releases at the moment.';

// — Redlock

export const REDLOCK_NODE_COUNT = (nodes: unknown): string =>
  `RedlockLeaseStore was given ${Array.isArray(nodes) ? `${nodes.length} nodes` : show(nodes)}; it needs an array of 3 or more, and an odd number: one more that makes it even can be down no more often, but has to be waited for.`;

export const REDLOCK_SAME_NODE = (
  first: number,
  second: number,
  firstName: string,
  secondName: string,
): string =>
  `Nodes ${first + 1} and ${second + 1} of RedlockLeaseStore are the same Redis server (${firstName}, ${secondName}), whose vote would count twice. Give it servers that fail independently.`;

export const REDLOCK_TTL = (ttl: number, maxTtl: number): string =>
  `A ttl of ${ttl} ms is longer than the maxTtl of RedlockLeaseStore, ${maxTtl} ms, for which a node that lost its data stays out. Raise maxTtl in all processes.`;

export const REDLOCK_NO_MAJORITY = (silent: number, count: number): string =>
  `${silent} of ${count} Redis nodes gave no answer, and the others are no majority.`;

export const REDLOCK_QUARANTINE = (quarantined: number, count: number, waitMs: number): string =>
  `${quarantined} of ${count} Redis nodes have restarted, lost their data or are new, and grant nothing for ${Math.ceil(waitMs)} ms more, so that what they have forgotten is over by then.`;

export const REDLOCK_NO_VOTE = (node: string, waitMs: number): string =>
  `The Redis node ${node} has restarted, lost its data or is new, and does not count for ${Math.ceil(waitMs)} ms more.`;

export const REDLOCK_NOT_SETTLED = (majority: number, count: number): string =>
  `The fence did not become known to ${majority} of ${count} Redis nodes in time; the key was given back.`;

export const REDLOCK_NOT_READMITTED = (node: string, voting: number, majority: number): string =>
  `The Redis node ${node} lost its data and needs ${majority} nodes that have not, to learn the last fences from; ${voting} of them can be reached.`;

export const REDLOCK_RELEASE_UNKNOWN = (freed: number, count: number): string =>
  `The key was freed on ${freed} of ${count} Redis nodes, which is no majority; the ttl frees it on the others.`;

// — Redis in its topologies

export const BAD_CLUSTER = (): string =>
  'RedisLeaseStore was given a cluster without nodes; "cluster" is a list of one or more { host, port }.';

export const SRV_CLUSTER = (): string =>
  'RedisLeaseStore was given a cluster client with useSRVRecords, which it does not look up. Give it { cluster: [{ host, port }] }.';

export const NOT_A_CLUSTER = (address: string): string =>
  `The Redis at ${address} is no node of a cluster. Give RedisLeaseStore its URL, or the nodes of a cluster.`;

export const IS_CLUSTER_NODE = (): string =>
  'This Redis is a node of a cluster. Give RedisLeaseStore { cluster: [{ host, port }] } or a cluster client: one node has a part of the keys only.';

export const REDIS_TOO_OLD = (version: string): string =>
  `This is Redis ${version}; leases need 6.2 or newer.`;

export const READ_ONLY_REDIS = (): string =>
  'This Redis is a read-only replica, and no primary: it cannot grant. The connection is made anew, in case there was a failover; if this stays so, the address is that of a replica.';

export const UNKNOWN_SENTINEL_NAME = (name: string): string =>
  `The sentinels know no primary named ${JSON.stringify(name)}. Is it the name in "sentinel monitor <name> …"?`;

export const PROTECTED_REDIS = (): string =>
  'This Redis is in protected mode: it has no password and takes no connections from other machines. Give it a password, or an address to bind to.';

export const BAD_REPLICAS = (value: unknown): string =>
  `"waitForReplicas" is ${show(value)}; it is a number of replicas: 0, 1, 2 …`;

export const TOO_FEW_COPIES = (copies: number, wanted: number): string =>
  `${copies} of ${wanted} replicas that were to have it did in time. It may be forgotten in a failover, and does not count.`;

export const QUARANTINE_IN_CLUSTER = (): string =>
  '"quarantine" is not possible in Redis Cluster: there is no key that every node has. Use waitForReplicas there.';

export const QUARANTINE_NEEDS_INFO = (): string =>
  '"quarantine" needs to know when the server was restarted: allow the user +info.';

export const IN_QUARANTINE = (ms: number): string =>
  `This Redis was restarted, lost its data or took over from another, and may not know of leases that are still held: it grants nothing for another ${Math.ceil(ms)} ms.`;

// — fences

export const BAD_FENCE = (value: unknown): string =>
  `The fence is ${show(value)}; it must be a whole number from 1 to 2^53 - 1, as a lease has it.`;

export const BAD_FENCE_SOURCE = (value: unknown): string =>
  `The fence is ${show(value)}; it must be a number, a lease, or { key, fence }.`;

export const NO_FENCE = (what: string): string =>
  `${what} needs a fence, and there is none: this code runs under no lease. Nothing was done. Call it inside run() or a decorated method, or pass the lease or its fence.`;

export const WHICH_FENCE = (what: string, keys: readonly string[]): string =>
  `${what} could be meant under the lease of ${keys.map(show).join(' or of ')}, whose fences do not compare. Nothing was done. Pass the one that guards it: the lease, or { key, fence }.`;

export const FENCE_OF_PERMIT = (what: string, key: string, permits: number): string =>
  `${what} cannot be fenced by the lease on "${key}": it is one of ${permits} permits, whose holders work beside each other, and the one that came first would be refused. A fence is for a key that one holds alone.`;

export const FOREIGN_FENCE = (
  what: string,
  fence: number,
  own: readonly { readonly key: string; readonly fence: number }[],
): string =>
  `${what} was admitted with the fence ${fence}, but the code runs under ${own
    .map(({ key, fence: theirs }) => `"${key}" (fence ${theirs})`)
    .join(
      ' and ',
    )}. Is it the fence of another lease? (Said once, and not with NODE_ENV=production.)`;

export const GATE_NOT_USED = (method: string): string =>
  `${method} is to write through its gate ("fenced"), and came to its end without. What it wrote elsewhere carried no fence. (Said once, and not with NODE_ENV=production.)`;

export const BAD_FENCE_RETENTION = (value: unknown): string =>
  `"retention" is ${show(value)}; it must be a time of at least a day ('90d'), or Infinity to keep every mark for ever.`;

export const FENCE_TOO_OLD = (resource: string, fence: number): string =>
  `The fence ${fence} is too old for "${resource}", of which nothing is remembered: a higher one could have been, and forgotten since. ${
    fence < LEAST_TIME
      ? 'It is no time, as the fences of etcd are none: their gate needs { retention: Infinity }.'
      : 'Take the lease anew, or raise the retention of the gate.'
  }`;

/** In µs, in 1973: no fence that is a time is below it. */
const LEAST_TIME = 1e14;

export const BAD_TRANSACTION = (value: unknown): string =>
  `admitIn() was given ${show(value)} for a transaction; it needs that of pg, TypeORM, Prisma, Knex, Kysely, Drizzle or MikroORM, or a function that sends a text in it.`;

export const GATE_OUTSIDE_TRANSACTION = (resource: string): string =>
  `admitIn() for "${resource}" was called outside of a transaction, or on a pool that takes another connection each time: what is written next is not guarded by it. Call it in the open transaction that writes.`;

export const GATE_NO_TABLE = (table: string): string =>
  `The table "${table}" of PostgresFenceGate does not exist. Run the SQL of postgresFenceSql('${table}') in a migration, or give the gate a pool, with which it creates the table.`;

export const GATE_NO_RIGHT = (table: string, message: string): string =>
  `PostgreSQL said: ${message}. PostgresFenceGate needs SELECT, INSERT, UPDATE and DELETE on "${table}", and the right to create it unless postgresFenceSql('${table}') was run by somebody else.`;

export const GATE_NEEDS_POOL = (method: string): string =>
  `${method}() of PostgresFenceGate needs a pool of pg: new PostgresFenceGate({ pool }). Without one there is admitIn(), in a transaction of yours.`;

export const GATE_NOT_COMMITTED = (resource: string): string =>
  `The transaction for "${resource}" was rolled back: a statement in it had failed, and the work went on as if it had not.`;

export const BAD_GATE_ANSWER = (): string =>
  'PostgreSQL answered PostgresFenceGate with something that is no answer to it. Nothing was admitted.';

export const BAD_FENCE_COLUMN = (value: unknown): string =>
  `"column" is ${show(value)}; it must be the name of a column, or table.column, of letters, digits, _ and $.`;

export const BAD_ROW_COUNT = (value: unknown): string =>
  `The number of rows that were written is ${show(value)}; it must be a whole number, such as the rowCount of pg or the numAffectedRows of Kysely.`;

export const BAD_REDIS_GATE_CLIENT = (value: unknown): string =>
  `RedisFenceGate was given ${show(value)}; it needs a client of ioredis, or a cluster of it.`;

export const BAD_REDIS_GATE_FIELDS = (key: string): string =>
  `hset() of RedisFenceGate was given no fields for "${key}"; it needs an object with one at least.`;

export const KEY_IS_MARK = (key: string): string =>
  `"${key}" is the name of a mark of this gate, which nobody writes to but the gate. Nothing was written.`;

export const CROSS_SLOT_GATE = (resource: string, keys: readonly string[]): string =>
  `${keys.map(show).join(', ')} and the resource "${resource}" are not in one slot of the cluster, and cannot be written in one step. Name them so that they are: with the resource "prices", the keys "{prices}:eur" and "{prices}:usd".`;

export const BAD_SECRETS = (): string =>
  '"fencing.secrets" must be a secret, or an array of them, each a text of at least 16 bytes. Is the environment variable set?';

export const FENCE_WITHOUT_KEY = (): string =>
  'A fenced call needs the key of the lease too: pass the lease, or { key, fence }.';

export const BAD_PAYLOAD = (value: unknown): string =>
  `fencePayload() was given ${show(value)}; a message that carries a fence is an object.`;

export const FENCE_MALFORMED = (name: string): string =>
  `"${name}" is malformed: a fence comes as one key, percent-encoded, one whole number from 1 to 2^53 - 1, and one signature.`;

export const FENCE_AHEAD = (key: string, fence: number): string =>
  `The fence ${fence} of "${key}" is too far ahead of the clock to be one that was granted.`;

export const FENCE_NOT_SIGNED = (key: string): string => `The fence of "${key}" is not signed.`;

export const FENCE_WRONGLY_SIGNED = (key: string): string =>
  `The signature of the fence of "${key}" was made by no secret of this service.`;

export const FENCE_OF_OTHER_KEY = (given: string, expected: string): string =>
  `The fence is of the lease "${given}"; this needs one of "${expected}".`;

export const FENCE_REQUIRED = (): string =>
  'This must be called under a lease: with the headers lease-key and lease-fence, or the property leaseFence of a message.';

export const GATE_UNAVAILABLE = (key: string): string =>
  `Whether the fence of "${key}" is stale is not known: its gate could not be asked. Nothing was done; try again.`;

export const GATE_SILENT = (method: string, message: string): string =>
  `The gate of ${method} did not answer (${message}). Calls are refused with 503 until it does.`;

export const FENCED_WITHOUT_GATE = (method: string): string =>
  `@Fenced on ${method} has no gate to remember fences in. Give LeaseModule { fencing: { gate } }, or the decorator a gate; or { gate: false } if the handler asks one itself, in the transaction that writes.`;

export const FENCED_WITHOUT_SECRET = (method: string): string =>
  `@Fenced on ${method} cannot tell a true fence from a forged one. Give LeaseModule { fencing: { secrets } }, the same in all services; or declare the handler { internal: true } if only your own services can reach it.`;

export const NO_SUCH_GATE = (method: string, token: string): string =>
  `${method} is to be guarded by the gate ${token}, and no module of the application provides one.`;

export const NOT_A_GATE = (method: string, token: string): string =>
  `${method} is to be guarded by ${token}, which is no FenceGate.`;

export const FENCED_RUN = (): string =>
  `"onUnavailable" cannot be 'run' where "fenced" is said: without a lease there is no fence to write under.`;

export const GUARDED_WITHOUT_GATE = (method: string): string =>
  `@Guarded() is used on ${method}, whose @WithLease or @LeaderOnly names no gate ("fenced").`;
