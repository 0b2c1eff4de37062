/** A store for the renewing thread that ends its thread at its second renewal. */

export class ThreadStore {
  constructor(base, ...args) {
    this.name = 'dying';
    this.made = import(base).then(({ RedisLeaseStore }) => new RedisLeaseStore(...args));
    this.renewals = 0;
  }

  async renew(holds) {
    if (++this.renewals === 2) process.exit(3);
    return (await this.made).renew(holds);
  }
}
