/**
 * Why a peer may be ahead, where it is known: the report quotes these only for what the figures of a run show.
 *
 * @type {readonly { peer: RegExp, what: RegExp, why: string }[]}
 */
const REASONS = [
  {
    peer: /redis-semaphore|redlock/,
    what: /CPU of .* held/,
    why: 'renews later in the ttl (after 80 % of it, or 500 ms before its end; ours after a third), so less often, and with less left when a renewal fails',
  },
  {
    peer: /redis-semaphore/,
    what: /bytes each/,
    why: 'keeps a token and a timer; no fence, no deadline of its own, no signal',
  },
  {
    peer: /@verrou\/core|redis-semaphore/,
    what: /one caller|100 keys/,
    why: 'SET NX and a compare-and-delete; no fence, no deadline in the claim, no bound on trust',
  },
];

export const reasonFor = (peer, what) =>
  REASONS.find((reason) => reason.peer.test(peer) && reason.what.test(what))?.why ?? '–';
