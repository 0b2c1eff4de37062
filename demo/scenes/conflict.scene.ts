import type { Instance } from '../fleet.js';
import { aMoment, until } from '../pace.js';
import type { Scene } from '../show.js';

const pay = ({ url }: Instance): Promise<Response> =>
  fetch(`${url}/orders/42/pay`, { method: 'POST' });

export const conflictScene: Scene = async ({ stage, fleet, world }) => {
  stage.scene(
    2,
    'A second request for the same order gets a 409',
    '@Post() @WithLease((id) => `order:${id}`): two clients pay order 42 at once, by real HTTP requests to two instances.',
  );
  const [first, second] = fleet.alive as [Instance, Instance];
  let charges = 0;
  const counting = world.charges.subscribe(() => charges++);

  stage.happens(first.name, 'POST /orders/42/pay');
  const paying = pay(first);
  await until(() => charges > 0);
  stage.happens(first.name, 'charging the card …');
  await aMoment();
  stage.happens(second.name, 'POST /orders/42/pay');
  const refused = await pay(second);
  stage.happens(second.name, `answers ${refused.status}`);
  const retryAfter = refused.headers.get('retry-after');
  const text = await refused.text();
  const body = JSON.parse(text) as { code?: string };
  const paid = await paying;
  stage.happens(first.name, `answers ${paid.status}, paid`);
  counting.unsubscribe();

  stage.quote(
    `HTTP/1.1 ${refused.status} ${refused.statusText}`,
    `Retry-After: ${retryAfter}`,
    text,
  );
  stage.space();
  stage.check(
    refused.status === 409 && body.code === 'LEASE_HELD' && !text.includes(first.name),
    `${second.name} refused with 409 LEASE_HELD, and said nothing about the holder.`,
    `it answered ${refused.status} ${body.code}`,
  );
  stage.check(
    Number(retryAfter) >= 1,
    `Retry-After told the client when to come back: in ${retryAfter} s.`,
    `it was ${retryAfter}`,
  );
  stage.check(
    paid.status === 201 && charges === 1,
    'The card was charged once.',
    `${charges} times`,
  );
};
