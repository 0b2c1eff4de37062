/** Native ESM: `NODE_OPTIONS=--experimental-vm-modules`, which test/run.mjs sets. */
export default {
  rootDir: import.meta.dirname,
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.spec.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    '^(\\.{1,2}/.*)\\.js$': '$1',
    '^nestjs-lease$': '<rootDir>/lib/index.ts',
    '^nestjs-lease/testing$': '<rootDir>/lib/testing/index.ts',
    '^nestjs-lease/(redis|postgres)$': '<rootDir>/lib/$1.ts',
    '^nestjs-lease/etcd$': '<rootDir>/lib/stores/etcd/index.ts',
  },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        sourceMaps: 'inline',
        module: { type: 'es6' },
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', decorators: true, explicitResourceManagement: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          keepClassNames: true,
        },
      },
    ],
  },
  setupFilesAfterEnv: [
    '<rootDir>/test/support/fail-on-unhandled.ts',
    '<rootDir>/test/support/retry-real-servers.ts',
  ],
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  collectCoverageFrom: ['lib/**/*.ts'],
  coverageDirectory: 'coverage',
  coverageReporters: ['text', 'lcovonly'],
  coverageThreshold: { global: { lines: 95 } },
  // A rejection after the last test fails its file instead of ending the whole run without a summary.
  waitForUnhandledRejections: true,
  // Most of them wait for something; one worker per core keeps those that race with a ttl honest.
  maxWorkers: 2,
  testTimeout: 20_000,
};
