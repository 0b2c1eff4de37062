/**
 * Which servers are tried, where Debian has them, and what is run on each. `programs`: the server first, then what a
 * test starts beside it. `groups`: columns of the report, each some specs.
 */
const contract = (...names) => names.map((name) => `test/contract/${name}.spec.ts`);

const REDIS = {
  kind: 'Redis, Valkey and Redict',
  variable: 'REDIS_SERVER',
  groups: {
    'contract suite': contract('redis'),
    'its own': [
      ...contract('redis-line', 'redis-data', 'redis-connection', 'redis-acl', 'redis-late'),
      ...contract('redis-model', 'redis-strange-records', 'redis-tls'),
    ],
    'replicas, Sentinel': contract('redis-replicas', 'redis-sentinel'),
    Cluster: [...contract('redis-cluster'), 'test/fencing/redis-cluster-gate.spec.ts'],
    // Its races and models ask nothing else of a server, and take minutes.
    Redlock: contract('redlock', 'redlock-nodes', 'redlock-scripts', 'redlock-late'),
    fences: ['test/fencing/redis-gate.spec.ts'],
  },
};

const POSTGRES = {
  kind: 'PostgreSQL',
  variable: 'POSTGRES_SERVER',
  groups: {
    'contract suite': contract('postgres'),
    'its own': contract('postgres-promises', 'postgres-connection', 'postgres-guard'),
    'advisory locks': contract('postgres-advisory'),
    fences: ['test/fencing/postgres-gate.spec.ts'],
  },
};

const ETCD = {
  kind: 'etcd',
  variable: 'ETCD_SERVER',
  groups: {
    'contract suite': contract('etcd'),
    'its own': contract('etcd-connection', 'etcd-late', 'etcd-watch'),
    'three members': contract('etcd-cluster'),
  },
};

const TOO_OLD = (name) => ({ 'told that it is too old': [`test/servers/${name}-too-old.ts`] });

const redisLike = (name, suites, more = {}) => ({
  ...REDIS,
  name,
  suites,
  packages: [`${name}-server`, `${name}-tools`],
  programs: [`usr/bin/${name}-server`, `usr/bin/${name}-cli`],
  ...more,
});

const postgres = (version, suites) => ({
  ...POSTGRES,
  name: 'postgresql',
  suites,
  packages: [`postgresql-${version}`],
  programs: ['postgres', 'initdb'].map((it) => `usr/lib/postgresql/${version}/bin/${it}`),
});

const etcd = (suites, more = {}) => ({
  ...ETCD,
  name: 'etcd',
  suites,
  packages: ['etcd-server'],
  programs: ['usr/bin/etcd'],
  ...more,
});

/** The packages are of the last suite, what they depend on of any. */
export const LINE_UP = [
  redisLike('redis', ['bullseye'], { groups: TOO_OLD('redis') }),
  redisLike('redis', ['bookworm']),
  redisLike('redis', ['trixie']),
  redisLike('redis', ['sid']),
  redisLike('redis', ['sid', 'experimental']),
  redisLike('valkey', ['bookworm', 'bookworm-backports']),
  redisLike('valkey', ['trixie']),
  redisLike('valkey', ['sid']),
  redisLike('redict', ['sid']),
  postgres(13, ['bullseye']),
  postgres(15, ['bookworm']),
  postgres(17, ['trixie']),
  postgres(18, ['sid']),
  etcd(['bullseye'], { groups: TOO_OLD('etcd') }),
  etcd(['bookworm']),
  etcd(['trixie']),
  etcd(['sid']),
].map((server) => ({ ...server, id: `${server.name}-${server.suites.at(-1)}` }));
