export interface Happening {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

const before = (a: Happening, b: Happening): boolean =>
  a.at < b.at || (a.at === b.at && a.order < b.order);

/** Real time of the simulated world, which nobody inside it can see: what happens next, and when. */
export class Timeline {
  now = 0;
  #order = 0;
  readonly #heap: Happening[] = [];

  after(ms: number, run: () => void): Happening {
    const happening: Happening = {
      at: this.now + Math.max(0, ms),
      order: this.#order++,
      run,
      cancelled: false,
    };
    const heap = this.#heap;
    let slot = heap.length;
    while (slot > 0) {
      const above = (slot - 1) >> 1;
      if (!before(happening, heap[above]!)) break;
      heap[slot] = heap[above]!;
      slot = above;
    }
    heap[slot] = happening;
    return happening;
  }

  /** The next one, taken out; `undefined` when nothing happens until `end`. Moves no time. */
  take(end: number): Happening | undefined {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined || first.at > end) return undefined;
      this.#removeFirst();
      if (!first.cancelled) return first;
    }
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const moving = heap.pop()!;
    if (heap.length === 0) return;
    let slot = 0;
    for (;;) {
      let below = 2 * slot + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && before(heap[below + 1]!, heap[below]!)) below++;
      if (!before(heap[below]!, moving)) break;
      heap[slot] = heap[below]!;
      slot = below;
    }
    heap[slot] = moving;
  }
}
