import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
// Not the globals, which a test may have faked.
import { performance } from 'node:perf_hooks';
import { clearTimeout, setTimeout } from 'node:timers';

/** A TCP proxy on loopback, in front of a port there, that can be told to misbehave. */
export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  return new FaultProxy(server, targetPort);
}

type Mode = 'open' | 'cut' | 'swallow-replies' | 'stall';

export class FaultProxy {
  readonly port: number;
  readonly #server: Server;
  #targetPort: number;
  readonly #connections = new Set<Connection>();
  #mode: Mode = 'open';
  #delay = 0;

  constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.#targetPort = targetPort;
    this.port = (server.address() as AddressInfo).port;
    server.unref();
    server.on('connection', (client) => this.#accept(client));
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Resets every connection, and every new one, until it heals. */
  cut(): void {
    this.#mode = 'cut';
    this.reset();
  }

  /** Resets every connection. */
  reset(): void {
    for (const connection of this.#connections) connection.reset();
  }

  /** New connections lead to another port from now on, as a name does after a failover. */
  leadTo(port: number): void {
    this.#targetPort = port;
  }

  /** The server gets the requests; its answers are lost. */
  swallowReplies(): void {
    this.#mode = 'swallow-replies';
  }

  /** Half-open: connections are accepted and stay open, nothing passes in either direction. */
  stall(): void {
    this.#mode = 'stall';
  }

  /** As if they were slower than all that come: what is on its way in these connections, or will be, waits until it heals. */
  stallThoseThatAreOpen(): void {
    for (const connection of this.#connections) connection.stall();
  }

  /** Everything arrives that much later, in both directions. */
  delay(ms: number): void {
    this.#delay = ms;
  }

  /** What was held back is delivered now. A connection that lost bytes is reset: TCP has no gaps. */
  heal(): void {
    this.#mode = 'open';
    this.#delay = 0;
    for (const connection of this.#connections) connection.heal();
  }

  /** What has come from the clients and has not been passed on yet. */
  get heldBack(): string {
    return [...this.#connections].map(({ heldBack }) => heldBack).join('');
  }

  async close(): Promise<void> {
    this.cut();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    // The port stays ours while cut, so that healing cannot fail: a reset instead of a refusal.
    if (this.#mode === 'cut') {
      client.on('error', () => undefined).resetAndDestroy();
      return;
    }
    const connection = new Connection(client, connect(this.#targetPort, '127.0.0.1'), {
      mode: () => this.#mode,
      delay: () => this.#delay,
    });
    this.#connections.add(connection);
    for (const socket of [client, connection.server]) {
      socket.once('close', () => {
        if (connection.isClosed) this.#connections.delete(connection);
      });
    }
  }
}

interface Weather {
  mode(): Mode;
  delay(): number;
}

class Connection {
  readonly #requests: OneWay;
  readonly #replies: OneWay;
  #lostBytes = false;
  #isStalled = false;

  constructor(
    readonly client: Socket,
    readonly server: Socket,
    outside: Weather,
  ) {
    const mode = (): Mode => (this.#isStalled ? 'stall' : outside.mode());
    const weather = { mode, delay: outside.delay };
    this.#requests = new OneWay(client, server, weather);
    this.#replies = new OneWay(server, client, weather, () => {
      if (weather.mode() !== 'swallow-replies') return false;
      this.#lostBytes = true;
      return true;
    });
  }

  get isClosed(): boolean {
    return this.client.destroyed && this.server.destroyed;
  }

  get heldBack(): string {
    return this.#requests.heldBack;
  }

  stall(): void {
    this.#isStalled = true;
  }

  heal(): void {
    this.#isStalled = false;
    if (this.#lostBytes) return this.reset();
    this.#requests.deliverNow();
    this.#replies.deliverNow();
  }

  reset(): void {
    this.client.resetAndDestroy();
    this.server.resetAndDestroy();
  }
}

const END = Symbol('end');

class OneWay {
  readonly #to: Socket;
  readonly #weather: Weather;
  readonly #underWay: { due: number; what: Buffer | typeof END }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, weather: Weather, isLost: () => boolean = () => false) {
    this.#to = to;
    this.#weather = weather;
    from.setNoDelay(true);
    from.on('error', () => undefined);
    from.on('data', (chunk) => {
      if (!isLost()) this.#send(chunk);
    });
    from.on('close', () => this.#send(END));
  }

  get heldBack(): string {
    return this.#underWay.map(({ what }) => (what === END ? '' : what.toString())).join('');
  }

  deliverNow(): void {
    for (const item of this.#underWay) item.due = 0;
    this.#deliver();
  }

  #send(what: Buffer | typeof END): void {
    // Not sooner than what is ahead: a delay that was shortened must not reorder the stream.
    const ahead = this.#underWay.at(-1)?.due ?? 0;
    const due = Math.max(ahead, performance.now() + this.#weather.delay());
    this.#underWay.push({ due, what });
    this.#deliver();
  }

  #deliver(): void {
    clearTimeout(this.#timer);
    if (this.#weather.mode() === 'stall') return;
    while (this.#underWay.length > 0) {
      const { due, what } = this.#underWay[0]!;
      const early = due - performance.now();
      if (early > 0) {
        this.#timer = setTimeout(() => this.#deliver(), early).unref();
        return;
      }
      this.#underWay.shift();
      if (what === END) this.#to.destroy();
      else if (this.#to.writable) this.#to.write(what);
    }
  }
}
