import { StaleFenceException } from 'nestjs-lease';

/** The recipe of docs/fencing.md for objects behind conditional requests. */
export async function putFenced(url: string, body: string, fence: number): Promise<void> {
  for (;;) {
    const head = await fetch(url, { method: 'HEAD' });
    if (!head.ok && head.status !== 404) throw new Error(`${url}: ${head.status}`);
    const seen = Number(head.headers.get('x-amz-meta-fence') ?? 0);
    if (seen > fence) throw new StaleFenceException(url, fence, seen);
    const condition: Record<string, string> = head.ok
      ? { 'if-match': head.headers.get('etag')! }
      : { 'if-none-match': '*' };
    const put = await fetch(url, {
      method: 'PUT',
      body,
      headers: { ...condition, 'x-amz-meta-fence': String(fence) },
    });
    if (put.ok) return;
    // 412: somebody was faster; look again, with what they wrote.
    if (put.status !== 412) throw new Error(`${url}: ${put.status}`);
  }
}
