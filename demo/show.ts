import type { Lease } from 'nestjs-lease';
import type { Fleet, Instance } from './fleet.js';
import type { World } from './shop/world.js';
import type { Stage } from './stage.js';

/** What every scene works with. */
export interface Show {
  readonly stage: Stage;
  readonly fleet: Fleet;
  readonly world: World;
  /** Left by the scene in which a lease is lost for the one in which it is used all the same. */
  handover?: {
    readonly from: Instance;
    readonly lost: Lease;
    readonly to: Instance;
    readonly held: Lease;
  };
}

export type Scene = (show: Show) => Promise<void>;

/** Plays the scenes and says whether all that they claim was seen. A scene that breaks off or checks nothing was not. */
export async function play(scenes: readonly Scene[], show: Show): Promise<boolean> {
  const { stage } = show;
  for (const scene of scenes) {
    const before = stage.checks;
    try {
      await scene(show);
      if (stage.checks === before) stage.check(false, 'The scene checked nothing.');
    } catch (error) {
      stage.check(false, 'The scene could not be played to its end.', String(error));
    }
  }
  return stage.failures === 0;
}
