import { expect, it } from '@jest/globals';
import { StaleFenceException, fenceColumn } from 'nestjs-lease';
import { BAD_FENCE_COLUMN, BAD_ROW_COUNT, NO_FENCE } from '../../lib/lease.messages.js';

it('is two pieces of SQL, with the number in them', () => {
  expect(fenceColumn(34)).toMatchObject({ set: 'fence = 34', where: 'fence <= 34', fence: 34 });
});

it.each([
  ['owner_fence', 'owner_fence', 'owner_fence'],
  ['ledger.fence', 'fence', 'ledger.fence'],
  ['app.ledger."the fence"', '"the fence"', 'app.ledger."the fence"'],
  ['`fence`', '`fence`', '`fence`'],
])('of a column %s', (name, set, where) => {
  expect(fenceColumn(7, name)).toMatchObject({ set: `${set} = 7`, where: `${where} <= 7` });
});

it.each(['', 'a b', '1a', 'a.b.c.d', 'fence = 1; --', '"a"b"', 'a.', 7, null])(
  '%p is no name of one',
  (name) => {
    expect(() => fenceColumn(7, name as string)).toThrow(BAD_FENCE_COLUMN(name));
  },
);

it('needs a fence', () => {
  expect(() => fenceColumn()).toThrow(NO_FENCE('The column "fence"'));
});

it.each([1, 2, 1n])('%p rows were written by an owner', (rows) => {
  expect(() => fenceColumn(7).assertWritten(rows, 'ledger')).not.toThrow();
});

it.each([0, 0n])('%p rows: somebody newer owns them', (rows) => {
  const stale = () => fenceColumn(7).assertWritten(rows, 'ledger');
  expect(stale).toThrow(StaleFenceException);
  expect(stale).toThrow('ledger');
});

it.each([undefined, null, -1, 0.5, NaN, '1', []])('%p is no number of rows', (rows) => {
  expect(() => fenceColumn(7).assertWritten(rows as number, 'ledger')).toThrow(BAD_ROW_COUNT(rows));
});
