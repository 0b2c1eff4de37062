import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { StaleFenceException } from 'nestjs-lease';
import { putFenced } from './put-fenced.js';

/** Objects with conditional requests, as S3 and its like have them: If-Match, If-None-Match: *, 412. */
const objects = new Map<string, { etag: string; fence: string; body: string }>();
const history: number[] = [];
let server: Server;
let url: string;
let serial = 0;

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request);
  const object = objects.get(request.url!);
  if (request.method === 'PUT') {
    const { 'if-match': match, 'if-none-match': none, 'x-amz-meta-fence': fence } = request.headers;
    const isAllowed = none === '*' ? object === undefined : object?.etag === match;
    if (isAllowed) {
      objects.set(request.url!, { etag: `"${++serial}"`, fence: String(fence), body });
      history.push(Number(fence));
    }
    response.statusCode = isAllowed ? 200 : 412;
  } else if (object === undefined) response.statusCode = 404;
  else response.setHeader('etag', object.etag).setHeader('x-amz-meta-fence', object.fence);
  response.end();
}

beforeAll(async () => {
  server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

it('the recipe for objects keeps a stale owner out', async () => {
  await putFenced(`${url}/report`, 'new', 7);
  await expect(putFenced(`${url}/report`, 'stale', 6)).rejects.toBeInstanceOf(StaleFenceException);
  await putFenced(`${url}/report`, 'again', 7);
  expect(objects.get('/report')?.body).toBe('again');
});

it('the recipe for objects lets fences only grow, however many write at once', async () => {
  history.length = 0;
  const fences = Array.from({ length: 40 }, (_, i) => i + 1).toSorted(() => Math.random() - 0.5);
  await Promise.all(
    fences.map((fence) =>
      putFenced(`${url}/crowded`, `by ${fence}`, fence).catch((error: unknown) =>
        expect(error).toBeInstanceOf(StaleFenceException),
      ),
    ),
  );
  expect(history).toEqual(history.toSorted((a, b) => a - b));
  expect(objects.get('/crowded')?.body).toBe('by 40');
});
