/**
 * Memory that two threads share. For each lease a place in which the thread that renews publishes when its last
 * success was sent, so that the other one finds it by looking, however long its own event loop stood still.
 *
 * Two records take turns: the one that `VERSION` points to is never being written, so a reader that finds the
 * version unchanged after reading has read one record, whole. Only atomic operations: nothing is torn or reordered.
 */
const WORDS = 16;
const VERSION = 0;
const GONE = 1;
const RECORDS = 2;
const RECORD_WORDS = 5;
const PLACES_PER_SHEET = 1_024;
const TWO_32 = 2 ** 32;

export interface Published {
  /** Milliseconds of shared time before the renewal left. */
  readonly mono: number;
  /** The wall clock at the same moment. */
  readonly wall: number;
  /** What it was renewed for. */
  readonly ttl: number;
}

export class TrustBoard {
  readonly #sheets: Int32Array[] = [];

  /** More places. The other thread must be given the same sheet. */
  addSheet(sheet = new SharedArrayBuffer(PLACES_PER_SHEET * WORDS * 4)): SharedArrayBuffer {
    this.#sheets.push(new Int32Array(sheet));
    return sheet;
  }

  get places(): number {
    return this.#sheets.length * PLACES_PER_SHEET;
  }

  /** For another lease. Only when nobody writes there any more. */
  clear(place: number): void {
    const { sheet, at } = this.#find(place);
    Atomics.store(sheet, at + GONE, 0);
    Atomics.store(sheet, at + VERSION, 0);
  }

  /** By the thread that renews, and by no other. */
  publish(place: number, { mono, wall, ttl }: Published): void {
    const { sheet, at } = this.#find(place);
    const version = (Atomics.load(sheet, at + VERSION) + 1) | 0;
    const record = at + RECORDS + (version & 1) * RECORD_WORDS;
    // In whole microseconds, down: nobody may think that it was sent later than it was (rule 3).
    store(sheet, record, Math.floor(mono * 1_000));
    store(sheet, record + 2, Math.floor(wall));
    Atomics.store(sheet, record + 4, Math.floor(ttl));
    Atomics.store(sheet, at + VERSION, version);
  }

  /** 0: nothing was published yet. */
  version(place: number): number {
    const { sheet, at } = this.#find(place);
    return Atomics.load(sheet, at + VERSION);
  }

  read(place: number): Published {
    const { sheet, at } = this.#find(place);
    for (;;) {
      const version = Atomics.load(sheet, at + VERSION);
      const record = at + RECORDS + (version & 1) * RECORD_WORDS;
      const mono = load(sheet, record) / 1_000;
      const wall = load(sheet, record + 2);
      const ttl = Atomics.load(sheet, record + 4);
      if (Atomics.load(sheet, at + VERSION) === version) return { mono, wall, ttl };
    }
  }

  /** The store says that it is not ours any more. */
  markGone(place: number): void {
    const { sheet, at } = this.#find(place);
    Atomics.store(sheet, at + GONE, 1);
  }

  isGone(place: number): boolean {
    const { sheet, at } = this.#find(place);
    return Atomics.load(sheet, at + GONE) === 1;
  }

  #find(place: number): { sheet: Int32Array; at: number } {
    const sheet = this.#sheets[Math.floor(place / PLACES_PER_SHEET)]!;
    return { sheet, at: (place % PLACES_PER_SHEET) * WORDS };
  }
}

function store(sheet: Int32Array, at: number, value: number): void {
  Atomics.store(sheet, at, Math.floor(value / TWO_32));
  Atomics.store(sheet, at + 1, (value % TWO_32) | 0);
}

function load(sheet: Int32Array, at: number): number {
  return Atomics.load(sheet, at) * TWO_32 + (Atomics.load(sheet, at + 1) >>> 0);
}
