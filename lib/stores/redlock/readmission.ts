import { REDLOCK_NOT_READMITTED } from '../../lease.messages.js';
import { majorityOf, type NodeState, type Voter } from './voter.js';

/**
 * Ends the quarantine of a node when its time is over. It is not enough to wait: the node has forgotten which fences it
 * helped to hand out. So it is told the highest one that a majority of those who vote knows, which have a node in common
 * with the majority of every earlier grant. They are asked after its time is over, when no claim from before is under
 * way any more.
 *
 * When so many have lost their memory that there cannot be a majority of those who have not, it was the first start or a
 * loss of all: then time alone ends it, and fences grow because clocks do.
 *
 * Resolves to 0 when it votes, else to the milliseconds that it has to wait.
 */
export async function readmit(voter: Voter, voters: readonly Voter[]): Promise<number> {
  const own = await voter.look();
  if (own.votes) return 0;
  if (own.waitMs > 0) return own.waitMs;
  const others = voters.filter((other) => other !== voter);
  const looks = await Promise.allSettled(others.map((other) => other.look()));
  const states = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
  const voting = states.filter((state) => state.votes);
  const unknown = others.length - states.length;
  const majority = majorityOf(voters.length);
  const isEnough = voting.length >= majority;
  if (!isEnough && voting.length + unknown >= majority) {
    throw new Error(REDLOCK_NOT_READMITTED(voter.name, voting.length, majority));
  }
  const sources = [own, ...(isEnough ? voting : states)];
  const highest = (of: (state: NodeState) => number): number => Math.max(...sources.map(of));
  return voter.admit(
    own.run,
    highest(({ high }) => high),
    highest(({ longest }) => longest),
  );
}
