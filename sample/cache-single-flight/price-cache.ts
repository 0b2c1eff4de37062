export interface PriceList {
  readonly id: string;
  readonly builtUnder: number;
}

export class PriceCache {
  readonly #entries = new Map<string, { list: PriceList; until: number }>();

  async get(id: string): Promise<PriceList | undefined> {
    const entry = this.#entries.get(id);
    return entry && entry.until > Date.now() ? entry.list : undefined;
  }

  async set(list: PriceList, ms: number): Promise<void> {
    this.#entries.set(list.id, { list, until: Date.now() + ms });
  }
}
