/** @param {Iterable<number>} values */
export function quantile(values, q) {
  const sorted = Float64Array.from(values).toSorted();
  if (sorted.length === 0) return Number.NaN;
  const at = (sorted.length - 1) * q;
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - below);
}

export const median = (values) => quantile(values, 0.5);

/** What a figure was over the rounds: its middle, and where four fifths of the rounds lie. */
export const spread = (values) => ({
  median: median(values),
  p10: quantile(values, 0.1),
  p90: quantile(values, 0.9),
});

export const sum = (values) => {
  let total = 0;
  for (const value of values) total += value;
  return total;
};

export const mean = (values) => sum(values) / values.length;
