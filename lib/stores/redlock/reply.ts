import { BAD_REPLY } from '../../lease.messages.js';

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
    const text = this.text();
    const fence = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : NaN;
    return Number.isSafeInteger(fence) ? fence : this.bad();
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
}
