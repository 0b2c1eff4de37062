import { StaleFenceException } from 'nestjs-lease';
import { Subject } from 'rxjs';

/** Which instance of the application a provider lives in. */
export const INSTANCE = Symbol('INSTANCE');

/** What the instances share besides the lease store: whoever is paid, written to, or watching. */
export class World {
  readonly closings = new Subject<{ instance: string; at: Date; fence: number }>();
  readonly charges = new Subject<{ instance: string; order: string }>();
  readonly dispatches = new Subject<{ instance: string; fence: number }>();
  readonly archive = new Archive();
}

/**
 * Storage that takes part in fencing: it remembers the highest fence it has seen, and refuses a write that comes
 * with a lower one. In SQL: `UPDATE … SET fence = $1 WHERE fence <= $1`.
 */
export class Archive {
  readonly #pages = new Map<string, { text: string; fence: number }>();

  write(page: string, text: string, fence: number): void {
    const highest = this.#pages.get(page)?.fence ?? 0;
    if (fence < highest) throw new StaleFenceException(page, fence, highest);
    this.#pages.set(page, { text, fence });
  }

  read(page: string): string | undefined {
    return this.#pages.get(page)?.text;
  }
}
