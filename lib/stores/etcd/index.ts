export { EtcdLeaseStore } from './etcd-lease-store.js';
export { type EtcdLeaseStoreOptions, type EtcdTlsOptions } from './etcd-options.js';
