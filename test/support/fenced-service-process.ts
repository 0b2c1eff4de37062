import type { CompiledLib } from './compiled-lib.js';
import { TalkingProcess } from './talking-process.js';

type LastWriter = Readonly<Record<string, string>>;

/** A Nest service that lets in only who brings a good fence, see fenced-service.mjs. */
export class FencedService extends TalkingProcess<{ readonly port: number }> {
  static start(lib: CompiledLib, secret: string): Promise<FencedService> {
    return new FencedService('fenced-service.mjs', [lib.dir, secret]).started();
  }

  get port(): number {
    return this.said[0]!.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async put(path: string, by: string, headers: Record<string, string> = {}): Promise<void> {
    const answer = await fetch(`${this.url}/${path}`, {
      method: 'PUT',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ by }),
    });
    if (!answer.ok) throw new Error(await answer.text());
  }

  /** Who wrote each key last, by the way they came. */
  async last(): Promise<{ readonly guarded: LastWriter; readonly plain: LastWriter }> {
    const answer = await fetch(`${this.url}/last`);
    return (await answer.json()) as { guarded: LastWriter; plain: LastWriter };
  }
}
