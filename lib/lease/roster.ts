/** Who can be on a roster. `seat` belongs to the roster; start it at -1. */
export interface Seated {
  seat: number;
}

/**
 * Those who are here now. Everybody knows their own seat, so that coming and going allocates nothing: a Set makes a new
 * table whenever its last member goes.
 */
export class Roster<Member extends Seated> {
  readonly #members: Member[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: Member): void {
    if (member.seat < 0) member.seat = this.#members.push(member) - 1;
  }

  delete(member: Member): void {
    const { seat } = member;
    if (seat < 0) return;
    member.seat = -1;
    const last = this.#members.pop()!;
    if (last === member) return;
    this.#members[seat] = last;
    last.seat = seat;
  }

  /** As they are now, in no order: who is met may leave. */
  [Symbol.iterator](): Iterator<Member> {
    return this.#members.slice()[Symbol.iterator]();
  }
}
