import type { Scenario } from './scenario.js';

/** Scenarios that broke a rule once, cut down to what mattered. */
export const regressions: readonly { readonly name: string; readonly scenario: Scenario }[] = [
  {
    name: 'a waiter whose turn comes late waits no longer than it said',
    scenario: {
      seed: 572,
      processes: [{ rate: 0.99, offset: 314752 }],
      serverRate: 1.0099392288457603,
      keys: [1, 1, 1],
      network: {
        latency: 5,
        tail: 0,
        tailMs: 100,
        requestLost: 0,
        replyLost: 0,
        duplicated: 0,
        reset: 0,
      },
      push: false,
      steps: [
        {
          at: 241,
          process: 0,
          what: {
            do: 'run',
            keys: [0],
            ttl: 900,
            wait: 1500,
            deeds: [{ after: 859, act: 'renew-shorter' }],
            ending: 'release',
          },
        },
        { at: 314, process: 1, what: { do: 'pause', ms: 670 } },
        {
          at: 950,
          process: 1,
          what: {
            do: 'acquire',
            keys: [0],
            ttl: 150,
            wait: 75,
            remember: 1918,
            deeds: [],
            ending: 'release',
          },
        },
        {
          at: 1012,
          process: 1,
          what: { do: 'run', keys: [0], ttl: 150, wait: 75, deeds: [], ending: 'release' },
        },
        { at: 1055, what: { do: 'freeze', ms: 394 } },
      ],
    },
  },
  {
    name: 'a waiter behind another is not told of a holder that is none',
    scenario: {
      seed: 952,
      processes: [{ rate: 1.0030029821349309, offset: 553787 }],
      serverRate: 1.0080448600417002,
      keys: [1],
      network: {
        latency: 5,
        tail: 0,
        tailMs: 100,
        requestLost: 0,
        replyLost: 0,
        duplicated: 0,
        reset: 0,
      },
      push: false,
      steps: [
        { at: 93, process: 0, what: { do: 'pause', ms: 993 } },
        {
          at: 530,
          process: 0,
          what: { do: 'run', keys: [0], ttl: 300, wait: 150, deeds: [], ending: 'release' },
        },
        {
          at: 678,
          process: 0,
          what: { do: 'run', keys: [0], ttl: 300, wait: 5, deeds: [], ending: 'release' },
        },
        { at: 988, process: 0, what: { do: 'suspend', ms: 63 } },
      ],
    },
  },
  {
    name: 'a shutdown in the middle of taking several keys',
    scenario: {
      seed: 1244,
      processes: [
        { rate: 1.01, offset: 155819 },
        { rate: 1.005584733528085, offset: 354533 },
      ],
      serverRate: 0.9946942180534825,
      keys: [1, 1, 1],
      network: {
        latency: 0.3,
        tail: 0,
        tailMs: 400,
        requestLost: 0.14921730294590815,
        replyLost: 0,
        duplicated: 0,
        reset: 0,
      },
      push: false,
      steps: [
        {
          at: 19,
          process: 1,
          what: {
            do: 'run',
            keys: [2],
            ttl: 150,
            wait: 0,
            deeds: [{ after: 99, act: 'renew' }],
            ending: 'forget',
          },
        },
        {
          at: 200,
          process: 1,
          what: {
            do: 'acquire',
            keys: [0, 1, 2],
            ttl: 300,
            wait: 1500,
            deeds: [],
            ending: 'release',
          },
        },
        {
          at: 315,
          process: 1,
          what: { do: 'run', keys: [1], ttl: 150, wait: 300, deeds: [], ending: 'release' },
        },
        {
          at: 430,
          process: 0,
          what: { do: 'run', keys: [0], ttl: 300, wait: 150, deeds: [], ending: 'release' },
        },
        { at: 528, process: 0, what: { do: 'cut-off', ms: 482 } },
        {
          at: 741,
          process: 0,
          what: { do: 'run', keys: [1], ttl: 900, wait: 0, deeds: [], ending: 'release' },
        },
        {
          at: 758,
          process: 0,
          what: { do: 'try', keys: [1], ttl: 60, wait: 0, deeds: [], ending: 'release' },
        },
        {
          at: 880,
          process: 0,
          what: { do: 'acquire', keys: [0], ttl: 900, wait: 450, deeds: [], ending: 'release' },
        },
        {
          at: 953,
          process: 1,
          what: { do: 'try', keys: [0], ttl: 300, wait: 0, deeds: [], ending: 'release' },
        },
        {
          at: 980,
          process: 1,
          what: { do: 'run', keys: [0], ttl: 300, wait: 150, deeds: [], ending: 'release' },
        },
        { at: 1071, process: 1, what: { do: 'close', grace: 0, stopGrace: 0 } },
      ],
    },
  },
  {
    name: 'a renewal by hand while the application shuts down',
    scenario: {
      seed: 23239,
      processes: [{ rate: 0.9914441275596618, offset: 428598 }],
      serverRate: 0.9963282699137926,
      keys: [2],
      network: {
        latency: 0.3,
        tail: 0,
        tailMs: 400,
        requestLost: 0,
        replyLost: 0,
        duplicated: 0,
        reset: 0,
      },
      push: false,
      steps: [
        {
          at: 36,
          process: 0,
          what: {
            do: 'run',
            keys: [0],
            ttl: 900,
            wait: 450,
            remember: 784,
            deeds: [{ after: 727, act: 'renew-longer' }],
            ending: 'release',
          },
        },
        {
          at: 543,
          process: 0,
          what: {
            do: 'run',
            keys: [0],
            ttl: 900,
            wait: 5,
            deeds: [{ after: 440, act: 'enter-more' }],
            ending: 'release',
          },
        },
        { at: 552, process: 0, what: { do: 'cut-off', ms: 961 } },
        { at: 730, process: 0, what: { do: 'close', grace: 50, stopGrace: 0 } },
      ],
    },
  },
];
