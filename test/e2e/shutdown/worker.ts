/** A service in a process of its own, for exits.spec.ts. Says what happens, one line of JSON each. */
import 'reflect-metadata';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import {
  Controller,
  Get,
  Injectable,
  Module,
  type INestApplication,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, CronExpression, Interval, ScheduleModule } from '@nestjs/schedule';
import {
  CurrentLease,
  ElectionService,
  Lease,
  LeaderOnly,
  LeaseModule,
  LeaseService,
  OnDeposed,
  WithLease,
} from 'nestjs-lease';
import { RedisLeaseStore } from 'nestjs-lease/redis';

export interface WorkerOptions {
  readonly kind: 'http' | 'context';
  /** Without one: the embedded store. */
  readonly redis?: string;
  /** What runs when it is told to end. */
  readonly work?: 'brief' | 'obedient' | 'deaf';
  readonly shutdownGrace?: number;
  /** @default true */
  readonly schedule?: boolean;
}

const options = JSON.parse(process.argv[2]!) as WorkerOptions;

const say = (what: string, more: object = {}): void =>
  void process.stdout.write(`${JSON.stringify({ what, ...more })}\n`);

@Injectable()
class Jobs implements OnApplicationShutdown {
  @Cron(CronExpression.EVERY_SECOND)
  @WithLease()
  async cron(): Promise<void> {}

  @Interval(10)
  @LeaderOnly('worker')
  async led(): Promise<void> {}

  @OnDeposed('worker')
  deposed({ reason }: { reason: string }): void {
    say('deposed', { reason });
  }

  /** Longer than its lease would last without being renewed. */
  @WithLease('work', { ttl: 1_000 })
  async work(@CurrentLease() lease: Lease): Promise<string> {
    say('work begins');
    lease.signal.addEventListener('abort', () =>
      say('work aborted', { reason: (lease.signal.reason as Error).message }),
    );
    if (options.work === 'brief') await setTimeout(1_500);
    if (options.work === 'obedient') await once(lease.signal, 'abort');
    // Nothing of it keeps the process alive.
    if (options.work === 'deaf') await new Promise(() => {});
    say('work ends', { isHeld: lease.isHeld });
    return 'done';
  }

  /** Of a module whose turn is before ours or after: it is not left out in any case. */
  onApplicationShutdown(): void {
    say('hook of another');
  }
}

@Controller()
class JobsController {
  constructor(private readonly jobs: Jobs) {}

  @Get()
  get(): Promise<string> {
    return this.jobs.work(undefined as unknown as Lease);
  }
}

@Module({
  imports: [
    ...(options.schedule === false ? [] : [ScheduleModule.forRoot()]),
    LeaseModule.forRoot({
      ...(options.redis === undefined ? {} : { store: new RedisLeaseStore(options.redis) }),
      ttl: 2_000,
      shutdownGrace: options.shutdownGrace ?? 5_000,
    }),
  ],
  providers: [Jobs],
  controllers: [JobsController],
})
class WorkerModule {}

const nestOptions = { logger: ['error', 'warn'] as ('error' | 'warn')[] };
const app =
  options.kind === 'http'
    ? await NestFactory.create(WorkerModule, nestOptions)
    : await NestFactory.createApplicationContext(WorkerModule, nestOptions);
app.enableShutdownHooks();

let url: string | undefined;
if (options.kind === 'http') {
  await (app as INestApplication).listen(0, '127.0.0.1');
  const { port } = (app as INestApplication).getHttpServer().address() as AddressInfo;
  url = `http://127.0.0.1:${port}`;
}

const leadership = app.get(ElectionService).leadership('worker');
while (!leadership.isLeader) await setTimeout(5);

// Nobody will give this one back.
await app.get(LeaseService).acquire('forgotten');

if (options.work !== undefined && options.kind === 'context') {
  void app.get(Jobs).work(undefined as unknown as Lease);
}
say('ready', { url });

process.stdin.once('data', () => {
  process.stdin.destroy();
  void app.close().then(() => say('closed'));
});
