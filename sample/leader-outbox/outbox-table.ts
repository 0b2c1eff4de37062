export interface Message {
  readonly id: number;
  /** Set when it was dispatched. */
  sentUnder?: number;
}

export class OutboxTable {
  readonly messages: Message[] = [];
  #highestFence = 0;

  add(): void {
    this.messages.push({ id: this.messages.length + 1 });
  }

  get waiting(): Message[] {
    return this.messages.filter(({ sentUnder }) => sentUnder === undefined);
  }

  /** Takes the mark only from the newest leader: `UPDATE … WHERE fence <= $fence`. False when it is stale. */
  markSent(message: Message, fence: number): boolean {
    if (fence < this.#highestFence) return false;
    this.#highestFence = fence;
    message.sentUnder = fence;
    return true;
  }
}
