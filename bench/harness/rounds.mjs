import { median, spread } from './statistics.mjs';

/**
 * Measures all entrants in short rounds, in an order that rotates, so that whatever else the machine does meets
 * all of them alike. Rounds of warming up are thrown away.
 *
 * @template {{ name: string, every?: number }} Entrant `every`: takes part in each n-th round only, and not in
 *   warming up
 * @template Figures
 * @param {readonly Entrant[]} entrants
 * @param {{ rounds: number, warmup: number }} plan
 * @param {(entrant: Entrant, round: number) => Promise<Figures>} measure
 * @returns {Promise<Map<string, (Figures | undefined)[]>>} by name, one place per round
 */
export async function interleave(entrants, { rounds, warmup }, measure) {
  const figures = new Map(entrants.map(({ name }) => [name, []]));
  for (let round = -warmup; round < rounds; round++) {
    const first = (round + warmup) % entrants.length;
    const order = [...entrants.slice(first), ...entrants.slice(0, first)];
    for (const entrant of order) {
      const { every = 1 } = entrant;
      if (round < 0 ? every > 1 : round % every !== 0) continue;
      const measured = await measure(entrant, round);
      if (round >= 0) figures.get(entrant.name)[round] = measured;
    }
  }
  return figures;
}

/**
 * A figure of every entrant, and its ratio to the floor's of the same round.
 *
 * @param {Map<string, (object | undefined)[]>} byName
 * @param {string | undefined} floor
 * @param {(figures: any) => number} figure
 */
export function against(floor, byName, figure) {
  return new Map(
    [...byName].map(([name, rounds]) => {
      const taken = rounds.flatMap((figures, round) => (figures ? [{ figures, round }] : []));
      const ratios = taken.flatMap(({ figures, round }) => {
        const base = byName.get(floor)?.[round];
        return base ? [figure(figures) / figure(base)] : [];
      });
      return [
        name,
        { value: median(taken.map(({ figures }) => figure(figures))), ratio: spread(ratios) },
      ];
    }),
  );
}
