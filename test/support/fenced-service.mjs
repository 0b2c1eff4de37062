/**
 * A Nest service that is written to by HTTP: `PUT /guarded/<key>` by those who bring the signed fence of a lease on that
 * key, `PUT /plain/<key>` by anybody. `GET /last` says who wrote each of them last. Says its port.
 *
 * node fenced-service.mjs <compiled library> <secret>
 */
import 'reflect-metadata';
import { pathToFileURL } from 'node:url';
import { Body, Controller, Get, Module, Param, Put } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';

const [, , dir, secret] = process.argv;
const { Fenced, LeaseModule, MemoryFenceGate } = await import(
  pathToFileURL(`${dir}/index.js`).href
);

const last = { guarded: {}, plain: {} };

class Written {
  guarded(key, { by }) {
    last.guarded[key] = by;
  }
  plain(key, { by }) {
    last.plain[key] = by;
  }
  last() {
    return last;
  }
}

/** What the compiler would write for decorators: this file runs as it is. */
function decorate(method, ...decorators) {
  const { prototype } = Written;
  const described = Object.getOwnPropertyDescriptor(prototype, method);
  Reflect.defineMetadata('design:paramtypes', [String, Object], prototype, method);
  for (const [at, parameter] of [Param('key'), Body()].entries()) parameter(prototype, method, at);
  Object.defineProperty(
    prototype,
    method,
    Reflect.decorate(decorators, prototype, method, described),
  );
}
decorate('guarded', Put('guarded/:key'), Fenced({ key: ({ params }) => params.key }));
decorate('plain', Put('plain/:key'));
decorate('last', Get('last'));
Controller()(Written);

class ServiceModule {}
Module({
  imports: [LeaseModule.forRoot({ fencing: { secrets: secret, gate: new MemoryFenceGate() } })],
  controllers: [Written],
})(ServiceModule);

const app = await NestFactory.create(ServiceModule, { logger: false });
await app.listen(0, '127.0.0.1');
process.stdout.write(`${JSON.stringify({ port: app.getHttpServer().address().port })}\n`);
process.stdin.on('end', () => app.close()).resume();
