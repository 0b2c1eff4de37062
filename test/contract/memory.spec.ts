import { describe, it } from '@jest/globals';
import { MemoryLeaseStore } from '../../lib/stores/memory/memory-lease-store.js';
import { describeLeaseStore } from './describe-lease-store.js';

describeLeaseStore('MemoryLeaseStore', () => new MemoryLeaseStore(), { describe, it });
