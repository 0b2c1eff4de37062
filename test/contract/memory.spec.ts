import { describe, it } from '@jest/globals';
import { MemoryLeaseStore } from '../../lib/stores/memory/memory-lease-store.js';
import { describeLeaseStore } from '../../lib/testing/describe-lease-store.js';

describeLeaseStore('MemoryLeaseStore', () => new MemoryLeaseStore(), { describe, it });
