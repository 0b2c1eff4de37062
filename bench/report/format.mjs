/** How figures are written. A figure that there is none of is a dash. */

const written = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits) : '–');

export const whole = (value) => written(value, 0);

export const decimal = (value) => written(value, 2);

export const percent = (share) => `${written(100 * share, 1)} %`;

export const microseconds = (us) => written(us, us < 10 ? 2 : us < 100 ? 1 : 0);

export const milliseconds = (us) => written(us / 1e3, us < 1e5 ? 2 : 0);

export const perSecond = (count) =>
  Number.isFinite(count) ? Math.round(count).toLocaleString('en-GB') : '–';

/** The ratio, and the spread of it. */
export const ratio = ({ median, p10, p90 }) => [
  decimal(median),
  Number.isFinite(p10) ? `${decimal(p10)}–${decimal(p90)}` : '–',
];
