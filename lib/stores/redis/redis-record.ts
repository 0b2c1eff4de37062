import { BAD_REPLY } from '../../lease.messages.js';
import { ownerPrefix, type LeaseHolder, type LeaseRecord } from '../lease-store.js';
import { readToken } from './wire-token.js';

/** What lua/inspect.lua found, for people. The record is described in lua/parts/record.lua. */
export function toRecord(key: string, reply: unknown): LeaseRecord | null {
  if (!Array.isArray(reply) || !Number.isSafeInteger(reply[0])) {
    throw new Error(BAD_REPLY('inspect'));
  }
  const now: number = reply[0];
  const record = String(reply[1]);
  const details = pairs(reply[3]);
  const ends: number[] = [];
  const holders: LeaseHolder[] = [];
  const add = (token: string, until: number, fence: number, since: number, by: string): void => {
    if (until <= now) return;
    ends.push(until);
    if (token === '') return;
    const owner = ownerPrefix(readToken(token));
    holders.push({
      instance: by,
      fence,
      owner,
      since: new Date(since),
      expiresInMs: until - now,
    });
  };
  const fence = Number(record.slice(0, 16));
  const until = Math.floor(Number(record.slice(17, 33)) / 1_000) + Number(record.slice(34, 46));
  const [token = '', ...instance] = record.slice(63).split(' ');
  // A fence is the time of its grant, or one more than the last where the clock went back.
  add(token, until, fence, Math.floor(fence / 1_000), instance.join(' '));
  for (const [member, until] of pairs(reply[2])) {
    const [fence, since, ...instance] = (details.get(member) ?? '').split(':');
    const by = instance.join(':');
    add(member.startsWith('kept:') ? '' : member, Number(until), Number(fence), Number(since), by);
  }
  if (ends.length === 0) return null;
  return { key, holders, freeInMs: Math.min(...ends) - now };
}

function pairs(reply: unknown): Map<string, string> {
  const flat = Array.isArray(reply) ? reply.flat() : [];
  const map = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) map.set(String(flat[i]), String(flat[i + 1]));
  return map;
}
