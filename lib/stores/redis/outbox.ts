/** More than this go in several commands, so that none of them keeps others waiting at the server. */
const AT_MOST = 64;

const done = Promise.resolve();

/** Those that may have something to send when the process exits: a socket still takes it then. */
const atExit = new Set<{ emptyAtExit(): void }>();
const exit = (): void => {
  for (const outbox of atExit) outbox.emptyAtExit();
};

/**
 * Gathers what is asked for in the same moment, so that it goes to the server in one command. Nobody waits for company:
 * what somebody waits for leaves before anything else happens. A release that nobody waits for leaves with what is asked
 * for next, or when the running code has come to its end: before the event loop turns, and before the process exits.
 */
export class Outbox<Release, Claim> {
  #releases: Release[] = [];
  #claims: Claim[] = [];
  /** It will be emptied before anything else happens. */
  #isLeaving = false;
  readonly #empty = (): void => this.empty();
  #isLast = false;

  /** @param send - releases are to go first, so that a claim behind one of the same key finds it free */
  constructor(
    private readonly send: (releases: readonly Release[], claims: readonly Claim[]) => void,
  ) {}

  release(release: Release, isRelaxed: boolean): void {
    const count = this.#releases.push(release) + this.#claims.length;
    if (count === 1 && isRelaxed) this.#leaveLater();
    else this.#leave(count);
  }

  claim(claim: Claim): void {
    this.#leave(this.#claims.push(claim) + this.#releases.length);
  }

  /** Empties it for good, unless more comes. */
  close(): void {
    this.empty();
    atExit.delete(this);
    if (atExit.size === 0) process.off('exit', exit);
  }

  #leave(count: number): void {
    if (count === AT_MOST) return this.empty();
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    void done.then(this.#empty);
  }

  #leaveLater(): void {
    if (atExit.size === 0) process.on('exit', exit);
    atExit.add(this);
    process.nextTick(this.#empty);
  }

  /** The process exits: what is sent now is sent without anybody to hear an answer. */
  get isLast(): boolean {
    return this.#isLast;
  }

  emptyAtExit(): void {
    this.#isLast = true;
    this.empty();
  }

  /** Sends what there is, now. */
  empty(): void {
    this.#isLeaving = false;
    const releases = this.#releases;
    const claims = this.#claims;
    if (releases.length === 0 && claims.length === 0) return;
    if (releases.length > 0) this.#releases = [];
    if (claims.length > 0) this.#claims = [];
    this.send(releases, claims);
  }
}
