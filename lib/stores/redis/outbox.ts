/** More than this go in several commands, so that none of them keeps others waiting at the server. */
const AT_MOST = 64;

/**
 * Gathers what is asked for in the same moment, so that it goes to the server in one command of each kind. Nobody
 * waits for company: what is alone leaves alone, before anything else happens. Releases go first, so that a claim
 * behind one of the same key finds it free.
 */
export class Outbox<Release, Claim> {
  #releases: Release[] = [];
  #claims: Claim[] = [];

  constructor(
    private readonly sendReleases: (releases: readonly Release[]) => void,
    private readonly sendClaims: (claims: readonly Claim[]) => void,
  ) {}

  release(release: Release): void {
    this.#added(this.#releases.push(release) + this.#claims.length);
  }

  claim(claim: Claim): void {
    this.#added(this.#claims.push(claim) + this.#releases.length);
  }

  #added(count: number): void {
    if (count === 1) queueMicrotask(() => this.#empty());
    else if (count === AT_MOST) this.#empty();
  }

  #empty(): void {
    const releases = this.#releases;
    const claims = this.#claims;
    if (releases.length > 0) {
      this.#releases = [];
      this.sendReleases(releases);
    }
    if (claims.length > 0) {
      this.#claims = [];
      this.sendClaims(claims);
    }
  }
}
