import { Controller, Post } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import {
  CurrentLease,
  Fenced,
  MemoryFenceGate,
  type FencingOptions,
  type Lease,
} from 'nestjs-lease';
import { startApp } from '../../support/nest-app.js';

const gate = new MemoryFenceGate();

@Controller()
class Open {
  @Fenced()
  @Post()
  async write(): Promise<void> {}
}

const starting = (fencing: FencingOptions, controller: new () => object = Open) =>
  startApp({ controllers: [controller], lease: { fencing } });

describe('what could never work is told at start', () => {
  it('a handler without a gate', async () => {
    await expect(starting({ secrets: 'x'.repeat(16) })).rejects.toThrow(
      '@Fenced on Open.write has no gate',
    );
  });

  it('a handler without a secret that is not declared internal', async () => {
    await expect(starting({ gate })).rejects.toThrow('cannot tell a true fence from a forged one');
  });

  it.each([['short'], [['x'.repeat(16), '']], [7], [null], [undefined]])(
    'secrets that are %p',
    async (secrets) => {
      await expect(starting({ gate, secrets: secrets as string })).rejects.toThrow(
        '"fencing.secrets"',
      );
    },
  );

  it('a secret is in no complaint', async () => {
    await expect(starting({ gate, secrets: 'only-a-bit' })).rejects.not.toThrow('only-a-bit');
  });

  it('a gate that is none, a time that is none, a misspelt option', async () => {
    await expect(starting({ gate: {} as never })).rejects.toThrow('"fencing.gate"');
    await expect(starting({ ahead: 'soon' as never })).rejects.toThrow('"fencing.ahead"');
    await expect(starting({ secret: 'x' } as never)).rejects.toThrow('There is no option "secret"');
  });

  it('a lease as a parameter of a handler that has none', async () => {
    @Controller()
    class Mistaken {
      @Fenced({ internal: true })
      @Post()
      async write(@CurrentLease() _lease: Lease): Promise<void> {}
    }
    await expect(starting({ gate }, Mistaken)).rejects.toThrow('@CurrentLease()');
  });

  it.each([
    [{ intern: true }],
    [{ internal: 1 }],
    [{ required: 'yes' }],
    [{ gate: null }],
    [{ key: '' }],
    [null],
  ])('options that are %j', (options) => {
    expect(() => {
      class Bad {
        @Fenced(options as never)
        async write(): Promise<void> {}
      }
      return Bad;
    }).toThrow('Bad.write');
  });
});
