import {
  BAD_ETCD_CREDENTIALS,
  BAD_ETCD_ENDPOINT,
  BAD_ETCD_OPTIONS,
  BAD_ETCD_PREFIX,
  BAD_ETCD_TLS,
  ETCD_TLS_WITHOUT_HTTPS,
} from '../../lease.messages.js';
import { assertKnown } from '../../lease/resolve-options.js';

/**
 * PEM texts, as they are in the files.
 *
 * @publicApi
 */
export interface EtcdTlsOptions {
  /**
   * Who signed the server's certificate.
   * @default those that Node trusts
   */
  ca?: string | Uint8Array;
  /** This client's certificate, where the server asks for one (`--client-cert-auth`). */
  cert?: string | Uint8Array;
  /** The private key of that certificate. */
  key?: string | Uint8Array;
}

/**
 * @publicApi
 */
export interface EtcdLeaseStoreOptions {
  /** The client URL of one member or, better, of all: `http://etcd-1:2379`. What one cannot answer goes to the next. */
  endpoints: string | readonly string[];
  /** The etcd user, where authentication is enabled. */
  username?: string;
  password?: string;
  /** For `https` endpoints. */
  tls?: EtcdTlsOptions;
  /**
   * Every name in etcd begins with it: all that a role of etcd has to allow.
   * @default 'nestjs-lease/'
   */
  prefix?: string;
}

/** The options, checked, in one shape. */
export interface EtcdSettings {
  readonly endpoints: readonly URL[];
  readonly user: { readonly name: string; readonly password: string } | undefined;
  readonly tls: { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer };
  readonly prefix: string;
}

const KNOWN: Record<keyof EtcdLeaseStoreOptions, true> = {
  endpoints: true,
  username: true,
  password: true,
  tls: true,
  prefix: true,
};

export function settingsOf(options: EtcdLeaseStoreOptions): EtcdSettings {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TypeError(BAD_ETCD_OPTIONS(options));
  }
  assertKnown(options, KNOWN);
  const { endpoints, prefix = 'nestjs-lease/' } = options;
  const list: readonly unknown[] = Array.isArray(endpoints) ? endpoints : [endpoints];
  if (list.length === 0) throw new TypeError(BAD_ETCD_ENDPOINT());
  const urls = list.map(endpointOf);
  // A control character ends a key there: see EtcdNames.
  if (typeof prefix !== 'string' || /\p{Cc}/u.test(prefix)) throw new TypeError(BAD_ETCD_PREFIX());
  return { endpoints: urls, user: userOf(options), tls: tlsOf(options, urls), prefix };
}

function endpointOf(endpoint: unknown): URL {
  const url = typeof endpoint === 'string' && URL.canParse(endpoint) ? new URL(endpoint) : null;
  const isWhole =
    url !== null &&
    (url.protocol === 'http:' || url.protocol === 'https:') &&
    // A user in the URL would be left unheeded, and its password shown (rule 15).
    `${url.username}${url.password}${url.search}${url.hash}` === '';
  if (!isWhole) throw new TypeError(BAD_ETCD_ENDPOINT());
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

function userOf({ username, password }: EtcdLeaseStoreOptions): EtcdSettings['user'] {
  if (username === undefined && password === undefined) return undefined;
  const isBoth = typeof username === 'string' && typeof password === 'string';
  if (!isBoth || username === '') throw new TypeError(BAD_ETCD_CREDENTIALS());
  return { name: username, password };
}

function tlsOf(
  { tls = {} }: EtcdLeaseStoreOptions,
  endpoints: readonly URL[],
): EtcdSettings['tls'] {
  if (typeof tls !== 'object' || tls === null) throw new TypeError(BAD_ETCD_TLS('tls'));
  const { ca, cert, key } = tls;
  const given = Object.entries({ ca, cert, key }).filter(([, value]) => value !== undefined);
  if (given.length === 0) return {};
  if (endpoints.some(({ protocol }) => protocol !== 'https:')) {
    throw new TypeError(ETCD_TLS_WITHOUT_HTTPS());
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw new TypeError(BAD_ETCD_TLS(cert === undefined ? 'tls.cert' : 'tls.key'));
  }
  return Object.fromEntries(given.map(([name, value]) => [name, pemOf(name, value)]));
}

/** Of a thread it comes as plain bytes. */
function pemOf(name: string, value: unknown): Buffer {
  if (typeof value === 'string') return Buffer.from(value);
  if (value instanceof Uint8Array || ArrayBuffer.isView(value)) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
  throw new TypeError(BAD_ETCD_TLS(`tls.${name}`));
}
