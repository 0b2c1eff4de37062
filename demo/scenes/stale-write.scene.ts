import { StaleFenceException } from 'nestjs-lease';
import { aMoment } from '../pace.js';
import type { Scene } from '../show.js';

const PAGE = 'report:7';

export const staleWriteScene: Scene = async ({ stage, world, handover }) => {
  if (handover === undefined) throw new Error('no lease was lost before');
  const { from, lost, to, held } = handover;
  stage.scene(
    5,
    'A write that was already on its way is rejected',
    `To be told does not call back what was sent. A write of ${from.name} comes late, with its old fence, to storage that compares fences.`,
  );
  const { archive } = world;
  archive.write(PAGE, `by ${to.name}`, held.fence);
  stage.happens(to.name, 'writes the report');
  stage.happens(to.name, `fence ${held.fence}`);
  await aMoment();

  from.wire.mend();
  stage.happens(from.name, 'line is back');
  await aMoment();
  stage.happens(from.name, 'its late write arrives');
  stage.happens(from.name, `fence ${lost.fence}`);
  let refusal: unknown;
  try {
    archive.write(PAGE, `by ${from.name}`, lost.fence);
  } catch (error) {
    refusal = error;
  }
  if (refusal instanceof StaleFenceException) {
    stage.happens(from.name, '✗ rejected');
    stage.quote(`${refusal.getStatus()} ${refusal.code}: ${refusal.message}`);
  }

  stage.space();
  stage.check(refusal instanceof StaleFenceException, 'The storage threw StaleFenceException.');
  stage.check(archive.read(PAGE) === `by ${to.name}`, `The report is ${to.name}'s, as it was.`);
  stage.check(!lost.isHeld, `The line is back; ${from.name}'s lease is not: a loss is final.`);
  await held.release();
};
