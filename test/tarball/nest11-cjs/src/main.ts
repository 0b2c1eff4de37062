import { setTimeout } from 'node:timers/promises';
import { Controller, Injectable, Module, Param, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { Fence, LeaseModule, WithLease } from 'nestjs-lease';
import { RedisLeaseStore } from 'nestjs-lease/redis';

/** The runner reads one JSON object per line. */
const tell = (fact: object): void => console.log(JSON.stringify(fact));

@Injectable()
class Books {
  @Cron('* * * * * *')
  @WithLease()
  async close(@Fence() fence: number): Promise<void> {
    tell({ fence });
  }
}

@Controller()
class Orders {
  @Post('pay/:id')
  @WithLease((id: string) => `order:${id}`)
  async pay(@Param('id') id: string): Promise<{ paid: string }> {
    await setTimeout(500);
    return { paid: id };
  }
}

@Module({
  imports: [
    ScheduleModule.forRoot(),
    LeaseModule.forRoot({ store: new RedisLeaseStore(process.env['REDIS_URL']) }),
  ],
  controllers: [Orders],
  providers: [Books],
})
class AppModule {}

async function bootstrap(): Promise<void> {
  const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] });
  await app.listen(0, '127.0.0.1');
  tell({ url: await app.getUrl() });

  // No process.exit: that nothing keeps the process alive is what the runner wants to see.
  process.stdin.resume().once('end', () => void app.close());
}

void bootstrap();
