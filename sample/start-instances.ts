import { ConsoleLogger, Logger, type INestApplication, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { MemoryLeaseStore, type LeaseStore } from 'nestjs-lease';
import { RedisLeaseStore } from 'nestjs-lease/redis';

/**
 * Starts instances of a sample in this process, one after the other, on one store: as good as several processes to
 * look at, and no server is needed. With REDIS_URL set, start it in a second terminal too. Ctrl-C ends it.
 */
export async function startInstances(
  createAppModule: (store: LeaseStore, instance: string) => Type,
  instances: readonly string[],
): Promise<INestApplication[]> {
  const url = process.env['REDIS_URL'];
  const store = url ? new RedisLeaseStore(url) : new MemoryLeaseStore();
  const logger = new SampleLogger('', { logLevels: ['log', 'warn', 'error', 'fatal'] });
  const apps: INestApplication[] = [];
  for (const instance of instances) {
    const app = await NestFactory.create(createAppModule(store, instance), { logger });
    app.enableShutdownHooks();
    await app.listen(0, '127.0.0.1');
    apps.push(app);
  }
  new Logger('sample').log(`${instances.join(', ')} on the ${store.name} store. Ctrl-C ends it.`);
  return apps;
}

const BOOT = [
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
];

/** Says what a sample is about: not what Nest says of every start, and a warning of all instances once. */
class SampleLogger extends ConsoleLogger {
  readonly #warned = new Set<unknown>();

  override log(message: unknown, ...rest: unknown[]): void {
    if (!BOOT.includes(String(rest.at(-1)))) super.log(message, ...rest);
  }

  override warn(message: unknown, ...rest: unknown[]): void {
    if (!this.#warned.has(message)) super.warn(message, ...rest);
    this.#warned.add(message);
  }
}
