import { BAD_FENCE_RETENTION } from '../lease.messages.js';
import { parseDuration, type Duration } from '../lease/duration.js';

const ONE_DAY = 86_400_000;

/**
 * For how long a gate remembers, and what that lets it say of a resource of which it remembers nothing.
 *
 * A fence is a time, in µs, or above it (rule 8). A mark M is kept until `max(last use, M) + retention`, by the clock of
 * the store that has it. So when it is gone, M is older than the retention, and every fence below it too: who comes with
 * one that is older than *half* the retention to a resource without a mark is refused. The other half is for clocks:
 * nothing stale passes unless that clock was set back by as much.
 */
export class Retention {
  /** In µs; Infinity keeps every mark. */
  readonly kept: number;

  constructor(retention: Duration = '90d') {
    if (retention !== Infinity) {
      const ms = parseDuration(retention, 'retention');
      if (ms < ONE_DAY) throw new RangeError(BAD_FENCE_RETENTION(retention));
      this.kept = Math.ceil(ms * 1_000);
    } else this.kept = Infinity;
  }

  get isForever(): boolean {
    return this.kept === Infinity;
  }

  /** What a fence of a resource without a mark must reach at the time `now`, in µs. */
  floorAt(now: number): number {
    return this.isForever ? 0 : Math.floor(now - this.kept / 2);
  }

  /** Until when a mark is kept that was used at the time `now`. */
  forgetAt(now: number, fence: number): number {
    return Math.max(now, fence) + this.kept;
  }
}
