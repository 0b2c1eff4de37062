import { BAD_REPLY } from '../../lease.messages.js';
import { LONGEST_TTL } from './voter.js';

/**
 * A fence is the microseconds of a clock, or the successor of one. One that is further from now than this is of no clock:
 * handed out, it would use up for ever what is left of the safe integers, on every node that it is told to.
 */
const CENTURY = 36_525 * 86_400_000;

/**
 * The answer of a script, read field by field. On one that our scripts cannot have given, nothing is granted or lost:
 * reading it throws.
 */
export class Reply {
  readonly #fields: readonly unknown[];
  #at = 0;

  constructor(
    private readonly script: string,
    answer: unknown,
  ) {
    this.#fields = Array.isArray(answer) ? answer : this.bad();
  }

  get isAtEnd(): boolean {
    return this.#at === this.#fields.length;
  }

  integer(least = 0): number {
    const field = this.#fields[this.#at++];
    return Number.isSafeInteger(field) && (field as number) >= least
      ? (field as number)
      : this.bad();
  }

  text(): string {
    const field = this.#fields[this.#at++];
    return typeof field === 'string' ? field : this.bad();
  }

  fence(): number {
    return this.#high() || this.bad();
  }

  /** The highest fence that is known, 0 when none is. */
  high(): number {
    return this.#high() ?? this.bad();
  }

  /** When something was, in milliseconds. */
  date(): number {
    const date = digits(this.text());
    return date <= LATEST_DATE ? date : this.bad();
  }

  /** For how long something lasts that a ttl bounds. */
  time(): number {
    const ms = this.integer();
    return ms <= LONGEST_TTL ? ms : this.bad();
  }

  /** A text that nothing follows. */
  last(): string {
    const text = this.text();
    this.end();
    return text;
  }

  end(): void {
    if (!this.isAtEnd) this.bad();
  }

  bad(): never {
    throw new Error(BAD_REPLY(this.script));
  }

  #high(): number | undefined {
    const fence = digits(this.text());
    return fence <= Math.min((Date.now() + CENTURY) * 1_000, Number.MAX_SAFE_INTEGER)
      ? fence
      : undefined;
  }
}

/** What a Date can be. */
const LATEST_DATE = 8_640_000_000_000_000;

/** NaN when it is no number, written as our scripts do. */
const digits = (text: string): number => (/^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : NaN);
