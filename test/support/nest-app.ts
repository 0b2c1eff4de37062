import 'reflect-metadata';
import type { AddressInfo, Server } from 'node:net';
import {
  Module,
  type INestApplication,
  type INestApplicationContext,
  type INestMicroservice,
  type LoggerService,
  type ModuleMetadata,
} from '@nestjs/common';
import { NestFactory, type AbstractHttpAdapter } from '@nestjs/core';
import { Transport, type MicroserviceOptions } from '@nestjs/microservices';
import { ExpressAdapter } from '@nestjs/platform-express';
import { ScheduleModule } from '@nestjs/schedule';
import { afterEach } from '@jest/globals';
import { LeaseModule, MemoryLeaseStore, type LeaseModuleOptions } from 'nestjs-lease';

/** An application of a test: Nest's own module metadata, and what its leases are to be. */
export interface AppOptions extends ModuleMetadata {
  /** `false`: without a LeaseModule. @default a store of its own */
  lease?: LeaseModuleOptions | false;
  /** With @nestjs/schedule. @default false */
  schedule?: boolean;
  logger?: CapturingLogger;
}

export interface LogLine {
  readonly level: 'log' | 'error' | 'warn' | 'debug' | 'verbose' | 'fatal';
  readonly message: unknown;
  readonly context: unknown;
}

/** Keeps what an application says. Nest has one logger per process: the last application that starts sets it. */
export class CapturingLogger implements LoggerService {
  readonly lines: LogLine[] = [];

  log = this.#keep('log');
  error = this.#keep('error');
  warn = this.#keep('warn');
  debug = this.#keep('debug');
  verbose = this.#keep('verbose');
  fatal = this.#keep('fatal');

  of(...levels: LogLine['level'][]): readonly unknown[] {
    return this.lines.filter(({ level }) => levels.includes(level)).map(({ message }) => message);
  }

  #keep(level: LogLine['level']) {
    return (message: unknown, ...rest: unknown[]): void => {
      this.lines.push({ level, message, context: rest.at(-1) });
    };
  }
}

const running = new Set<INestApplicationContext>();

/** Called after each test; earlier by a test that wants to see it. */
export async function closeApps(): Promise<void> {
  const apps = [...running];
  running.clear();
  await Promise.all(apps.map((app) => app.close()));
}

afterEach(closeApps);

@Module({})
class TestModule {}

function moduleOf({ lease = {}, schedule = false, imports = [], ...rest }: AppOptions) {
  const { controllers = [], providers = [], exports = [] } = rest;
  return {
    module: TestModule,
    imports: [
      ...imports,
      ...(schedule ? [ScheduleModule.forRoot()] : []),
      ...(lease === false ? [] : [LeaseModule.forRoot({ shutdownGrace: '1s', ...lease })]),
    ],
    controllers,
    providers,
    exports,
  };
}

const nestOptions = ({ logger = new CapturingLogger() }: AppOptions) => ({
  logger,
  abortOnError: false,
});

/** An application without HTTP. */
export async function startApp(options: AppOptions): Promise<INestApplicationContext> {
  const app = await NestFactory.createApplicationContext(moduleOf(options), nestOptions(options));
  running.add(app);
  return app;
}

/** Several instances of one service, each with its own module and all on the same store. */
export async function startFleet(
  size: number,
  options: AppOptions,
): Promise<INestApplicationContext[]> {
  const lease = { store: new MemoryLeaseStore(), ...options.lease };
  const fleet: INestApplicationContext[] = [];
  for (let i = 0; i < size; i++) {
    fleet.push(await startApp({ ...options, lease: { instance: `instance-${i}`, ...lease } }));
  }
  return fleet;
}

export interface HttpApp {
  readonly app: INestApplication;
  readonly url: string;
}

/** An application that listens on a free loopback port. */
export async function startHttp(
  options: AppOptions,
  adapter: AbstractHttpAdapter = new ExpressAdapter(),
  prepare: (app: INestApplication) => void | Promise<void> = () => {},
): Promise<HttpApp> {
  const app = await NestFactory.create(moduleOf(options), adapter, {
    ...nestOptions(options),
    forceCloseConnections: true,
  });
  running.add(app);
  await prepare(app);
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  return { app, url: `http://127.0.0.1:${port}` };
}

/** A microservice that speaks TCP on a free loopback port. */
export async function startMicroservice(
  options: AppOptions,
  prepare: (app: INestMicroservice) => void = () => {},
): Promise<{ app: INestMicroservice; port: number }> {
  const app = await NestFactory.createMicroservice<MicroserviceOptions>(moduleOf(options), {
    ...nestOptions(options),
    transport: Transport.TCP,
    options: { host: '127.0.0.1', port: 0 },
  });
  running.add(app);
  prepare(app);
  await app.listen();
  const { port } = app.unwrap<Server>().address() as AddressInfo;
  return { app, port };
}
