export {
  describeLeaseStore,
  type LeaseStoreFactory,
  type LeaseStoreSuiteOptions,
} from './describe-lease-store.js';
