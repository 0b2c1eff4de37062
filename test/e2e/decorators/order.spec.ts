import {
  Body,
  Controller,
  Get,
  Header,
  HttpCode,
  Injectable,
  Param,
  ParseIntPipe,
  Post,
  Query,
  SetMetadata,
  UseGuards,
  UseInterceptors,
  UsePipes,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type NestInterceptor,
  type PipeTransform,
  type Type,
} from '@nestjs/common';
import { NestFactory, Reflector } from '@nestjs/core';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Cron, SchedulerRegistry } from '@nestjs/schedule';
import { ApiOperation, ApiResponse, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { describe, expect, it } from '@jest/globals';
import { map } from 'rxjs';
import {
  CurrentLease,
  Fence,
  LeaseModule,
  LeaseService,
  WithLease,
  type Lease,
} from 'nestjs-lease';
import { startApp, startHttp } from '../../support/nest-app.js';
import { until } from '../../support/until.js';

const ROLE = 'test:role';
const seen: string[] = [];

@Injectable()
class RoleGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}
  canActivate(context: ExecutionContext): boolean {
    seen.push(`guard ${this.reflector.get<string>(ROLE, context.getHandler())}`);
    return true;
  }
}

@Injectable()
class Exclaim implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    seen.push(`interceptor of ${context.getHandler().name}`);
    return next.handle().pipe(map((text: string) => `<${text}>`));
  }
}

class Upper implements PipeTransform {
  transform(value: unknown): unknown {
    return typeof value === 'string' ? value.toUpperCase() : value;
  }
}

describe('@WithLease among the decorators of Nest', () => {
  @Controller('above')
  class Above {
    @WithLease((id: number) => `order:${id}`)
    @SetMetadata(ROLE, 'clerk')
    @HttpCode(207)
    @Header('x-house', 'yes')
    @UseGuards(RoleGuard)
    @UseInterceptors(Exclaim)
    @UsePipes(Upper)
    @Post(':id')
    async pay(
      @Param('id', ParseIntPipe) id: number,
      @Query('name') name: string,
      @Fence() fence?: number,
      @CurrentLease() lease?: Lease,
    ): Promise<string> {
      return `${typeof id} ${name} ${lease!.key} ${fence === lease!.fence}`;
    }
  }

  @Controller('below')
  class Below {
    @Post(':id')
    @UsePipes(Upper)
    @UseInterceptors(Exclaim)
    @UseGuards(RoleGuard)
    @Header('x-house', 'yes')
    @HttpCode(207)
    @SetMetadata(ROLE, 'clerk')
    @WithLease((id: number) => `order:${id}`)
    async pay(
      @Param('id', ParseIntPipe) id: number,
      @Query('name') name: string,
      @Fence() fence?: number,
      @CurrentLease() lease?: Lease,
    ): Promise<string> {
      return `${typeof id} ${name} ${lease!.key} ${fence === lease!.fence}`;
    }
  }

  @Controller('between')
  class Between {
    @HttpCode(207)
    @UseGuards(RoleGuard)
    @Post(':id')
    @WithLease((id: number) => `order:${id}`)
    @UsePipes(Upper)
    @UseInterceptors(Exclaim)
    @Header('x-house', 'yes')
    @SetMetadata(ROLE, 'clerk')
    async pay(
      @Param('id', ParseIntPipe) id: number,
      @Query('name') name: string,
      @Fence() fence?: number,
      @CurrentLease() lease?: Lease,
    ): Promise<string> {
      return `${typeof id} ${name} ${lease!.key} ${fence === lease!.fence}`;
    }
  }

  it.each(['above', 'below', 'between'])(
    'works %s the route, guard, pipe, interceptor, status and header of a handler',
    async (path) => {
      const { url } = await startHttp({ controllers: [Above, Below, Between] });
      seen.length = 0;
      const answer = await fetch(`${url}/${path}/7?name=ada`, { method: 'POST' });
      expect(await answer.text()).toBe('<number ADA order:7 true>');
      expect([answer.status, answer.headers.get('x-house')]).toEqual([207, 'yes']);
      expect(seen).toEqual(['guard clerk', 'interceptor of pay']);
    },
  );

  it('keeps the name, the length and all metadata of the method', () => {
    class Plain {
      @SetMetadata(ROLE, 'clerk')
      async method(_a: string, _b: number): Promise<void> {}
    }
    class Leased {
      @WithLease()
      @SetMetadata(ROLE, 'clerk')
      async method(_a: string, _b: number): Promise<void> {}
    }
    const { method } = Leased.prototype;
    expect([method.name, method.length]).toEqual(['method', 2]);
    expect(Reflect.getMetadataKeys(method)).toEqual(
      expect.arrayContaining(Reflect.getMetadataKeys(Plain.prototype.method)),
    );
    expect(Reflect.getMetadata(ROLE, method)).toBe('clerk');
  });
});

describe('@WithLease and Swagger', () => {
  class Order {
    id!: string;
  }
  const nothing: MethodDecorator = () => {};

  /** The same controller, with whatever is put above and below its other decorators. */
  function controllerWith(above: MethodDecorator, below: MethodDecorator): Type {
    @Controller('orders')
    class Orders {
      @above
      @Post(':id')
      @ApiOperation({ summary: 'Pays an order', operationId: 'pay' })
      @ApiResponse({ status: 409, description: 'Somebody else is at it' })
      @ApiResponse({ status: 201, type: Order })
      @below
      async pay(
        @Param('id') _id: string,
        @Body() _order: Order,
        @Query('dry') _dry: boolean,
        @Fence() _fence?: number,
        @CurrentLease() _lease?: Lease,
      ): Promise<Order> {
        return new Order();
      }
    }
    return Orders;
  }

  async function documentOf(controller: Type): Promise<object> {
    const app = await NestFactory.create(
      { module: class Root {}, imports: [LeaseModule.forRoot()], controllers: [controller] },
      { logger: false, abortOnError: false },
    );
    return SwaggerModule.createDocument(app, new DocumentBuilder().build());
  }

  it.each([
    ['above', WithLease('key') as MethodDecorator, nothing],
    ['below', nothing, WithLease('key') as MethodDecorator],
  ])('makes no difference to the document %s its decorators', async (_, above, below) => {
    const leased = await documentOf(controllerWith(above, below));
    const plain = await documentOf(controllerWith(nothing, nothing));
    expect(JSON.stringify(leased)).toContain('Somebody else is at it');
    expect(leased).toEqual(plain);
  });
});

describe('@WithLease with @OnEvent and @Cron', () => {
  const heard: string[] = [];

  @Injectable()
  class Listener {
    @OnEvent('order.paid')
    @WithLease((order: { id: string }) => `order:${order.id}`)
    async above(order: { id: string }, @Fence() fence?: number): Promise<void> {
      heard.push(`above ${order.id} ${typeof fence}`);
    }

    @WithLease((order: { id: string }) => `mail:${order.id}`)
    @OnEvent('order.paid')
    async below(order: { id: string }, @Fence() fence?: number): Promise<void> {
      heard.push(`below ${order.id} ${typeof fence}`);
    }
  }

  it.each(['above', 'below'])('hears events with @OnEvent %s it', async (order) => {
    const app = await startApp({ imports: [EventEmitterModule.forRoot()], providers: [Listener] });
    heard.length = 0;
    app.get(EventEmitter2).emit('order.paid', { id: '7' });
    await until(() => heard.includes(`${order} 7 number`));
  });

  @Injectable()
  class Jobs {
    @Cron('0 0 1 1 *', { name: 'cron above' })
    @WithLease()
    async above(): Promise<void> {}

    @WithLease()
    @Cron('0 0 1 1 *', { name: 'cron below' })
    async below(): Promise<void> {}
  }

  it.each(['above', 'below'])('is skipped when held with @Cron %s it', async (order) => {
    const app = await startApp({ providers: [Jobs], schedule: true });
    expect([...app.get(SchedulerRegistry, { strict: false }).getCronJobs().keys()]).toContain(
      `cron ${order}`,
    );
    await using _ = await app.get(LeaseService).acquire(`Jobs.${order}`);
    await expect(app.get(Jobs)[order as 'above' | 'below']()).resolves.toBeUndefined();
  });
});

describe('@WithLease with a global pipe', () => {
  @Controller()
  class Plain {
    @Get()
    @WithLease()
    async get(@Fence() fence?: number): Promise<string> {
      return typeof fence;
    }
  }

  it('fills its parameters where global pipes look at every argument', async () => {
    const { url } = await startHttp({ controllers: [Plain] }, undefined, (app) => {
      app.useGlobalPipes(new Upper());
    });
    expect(await (await fetch(url)).text()).toBe('number');
  });
});
