import type { CompiledLib } from './compiled-lib.js';
import { TalkingProcess } from './talking-process.js';

export interface Said {
  readonly said: string;
  readonly fence?: number;
  readonly reason?: string;
}

/** Another process that holds a lease, see holder.mjs. */
export class HolderProcess extends TalkingProcess<Said> {
  /** Resolves when it holds the key. */
  static start(
    lib: CompiledLib,
    url: string,
    key: string,
    ttl: number,
    script = 'holder.mjs',
  ): Promise<HolderProcess> {
    return new HolderProcess(script, [lib.dir, url, key, `${ttl}`]).started();
  }

  get fence(): number {
    return this.said[0]!.fence!;
  }
}
