import { describe, expect, it } from '@jest/globals';
import { play, type Scene, type Show } from '../../../demo/show.js';
import { Stage } from '../../../demo/stage.js';

function rehearse(...scenes: Scene[]): { isShown: Promise<boolean>; lines: string[] } {
  const lines: string[] = [];
  const stage = new Stage({ lanes: [], colours: false, write: (line) => lines.push(line) });
  // The scenes here need no instances.
  return { isShown: play(scenes, { stage } as Show), lines };
}

const works: Scene = async ({ stage }) => stage.check(true, 'It works.');

describe('the verdict of the demo', () => {
  it('is good when everything that was claimed was seen', async () => {
    const { isShown, lines } = rehearse(works, works);

    expect(await isShown).toBe(true);
    expect(lines).toEqual(['✓  It works.', '✓  It works.']);
  });

  it('is bad when one claim was not seen, and says what was seen instead', async () => {
    const fails: Scene = async ({ stage }) => stage.check(false, 'It works.', 'it did not');
    const { isShown, lines } = rehearse(works, fails, works);

    expect(await isShown).toBe(false);
    expect(lines).toContain('✗  It works. Instead: it did not.');
  });

  it('is bad when a scene breaks off, and the others are played all the same', async () => {
    const breaksOff: Scene = () => Promise.reject(new Error('lost the plot'));
    const { isShown, lines } = rehearse(breaksOff, works);

    expect(await isShown).toBe(false);
    expect(lines.join('\n')).toContain('lost the plot');
    expect(lines).toContain('✓  It works.');
  });

  it('is bad when a scene checked nothing', async () => {
    const { isShown } = rehearse(async () => {});

    expect(await isShown).toBe(false);
  });
});
