import type {
  Claim,
  Grant,
  Hold,
  LeaseRecord,
  LeaseStore,
  Refusal,
  ReleaseHow,
  RenewOutcome,
} from 'nestjs-lease';

/**
 * The line between one instance and the store. Cut, it behaves like a dead network: nothing arrives, nothing comes
 * back, and nobody says so.
 */
export class Wire implements LeaseStore {
  readonly name: string;
  readonly limits: LeaseStore['limits'];
  #isCut = false;

  constructor(private readonly store: LeaseStore) {
    this.name = store.name;
    this.limits = store.limits;
  }

  cut(): void {
    this.#isCut = true;
  }

  mend(): void {
    this.#isCut = false;
  }

  acquire(claim: Claim): Promise<Grant | Refusal> {
    return this.#carry(() => this.store.acquire(claim));
  }

  renew(holds: readonly Hold[]): Promise<readonly RenewOutcome[]> {
    return this.#carry(() => this.store.renew(holds));
  }

  release(hold: Hold, how: ReleaseHow): Promise<boolean> {
    return this.#carry(() => this.store.release(hold, how));
  }

  inspect(key: string): Promise<LeaseRecord | null> {
    return this.#carry(() => this.store.inspect(key));
  }

  list(options?: { readonly prefix?: string }): AsyncIterable<LeaseRecord> {
    return this.store.list(options);
  }

  async watch(key: string, onFree: () => void): Promise<() => Promise<void>> {
    if (!this.store.watch) throw new Error(`The ${this.name} store has no push.`);
    return this.store.watch(key, () => {
      if (!this.#isCut) onFree();
    });
  }

  async open(): Promise<void> {
    await this.store.open?.();
  }

  close(): Promise<void> {
    return this.store.close();
  }

  async #carry<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#isCut) return silence;
    const answer = await ask();
    return this.#isCut ? silence : answer;
  }
}

const silence = new Promise<never>(() => {});
