import { decimal } from './format.mjs';

const WIDTH = 880;
const LABELS = 285;
const BARS = 470;
const ROW = 22;
/** Longer bars are cut off here, and say so. */
const LONGEST = 4;

const STYLE = `
  text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328; }
  .title { font-size: 15px; font-weight: 600; }
  .quiet { fill: #59636e; font-size: 12px; }
  .page { fill: #ffffff; }
  .line { stroke: #59636e; stroke-width: 1; stroke-dasharray: 3 3; }
  .spread { stroke: #1f2328; stroke-width: 1.5; opacity: 0.65; }
  .ours { fill: #d9304f; } .floor { fill: #8c959f; } .peer { fill: #7fa8d6; }
  .strong { font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .quiet { fill: #9198a1; } .page { fill: #0d1117; }
    .line { stroke: #9198a1; } .spread { stroke: #f0f6fc; }
    .ours { fill: #f0506e; } .floor { fill: #656c76; } .peer { fill: #3d6fa8; }
  }`;

/**
 * Bars of ratios to the floor, one panel per scenario.
 *
 * @param {{ subtitle: string, panels: readonly { title: string, about: string, rows: readonly Bar[] }[] }} chart
 * @typedef {{ name: string, kind: string, ratio: { median: number, p10: number, p90: number } }} Bar
 */
export function chart({ subtitle, panels }) {
  let y = 58;
  const drawn = panels.map((one) => {
    const { svg, height } = panel(one, y);
    y += height;
    return svg;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img" aria-label="nestjs-lease beside raw ioredis and other libraries: time as a ratio to the floor">
<style>${STYLE}
</style>
<rect class="page" width="${WIDTH}" height="${y}" rx="8"/>
<text class="title" x="20" y="28">Time as a ratio to the raw floor: shorter is better</text>
<text class="quiet" x="20" y="46">${escaped(subtitle)}</text>
${drawn.join('\n')}
</svg>
`;
}

function panel({ title, about, rows }, top) {
  const sorted = rows.toSorted((a, b) => a.ratio.median - b.ratio.median);
  const most = Math.max(...sorted.map(({ ratio }) => Math.min(ratio.p90, LONGEST)), 1.2);
  const scale = BARS / most;
  const first = top + 50;
  const height = 50 + sorted.length * ROW + 18;
  const floorAt = LABELS + scale;
  const bars = sorted.map((row, i) => bar(row, first + i * ROW, scale, most));
  return {
    height,
    svg: `<text class="title" x="20" y="${top + 22}">${escaped(title)}</text>
<text class="quiet" x="20" y="${top + 39}">${escaped(about)}</text>
${bars.join('\n')}
<line class="line" x1="${floorAt}" x2="${floorAt}" y1="${first - 4}" y2="${first + sorted.length * ROW}"/>`,
  };
}

function bar({ name, kind, ratio }, y, scale, most) {
  const { median, p10, p90 } = ratio;
  const isCut = median > most;
  const length = Math.min(median, most) * scale;
  const to = Math.min(p90, most) * scale;
  const middle = y + 8;
  const spread = isCut
    ? ''
    : `<line class="spread" x1="${at(p10 * scale)}" x2="${at(to)}" y1="${middle}" y2="${middle}"/>`;
  const end = LABELS + Math.max(length, isCut ? 0 : to) + 8;
  const label = `${decimal(median)}${isCut ? ' ⟶' : ''}`;
  return `<text x="${LABELS - 10}" y="${y + 12}" text-anchor="end"${kind === 'ours' ? ' class="strong"' : ''}>${escaped(name)}</text>
<rect class="${kind}" x="${LABELS}" y="${y}" width="${length.toFixed(1)}" height="16" rx="2"/>
${spread}
<text x="${end.toFixed(1)}" y="${y + 12}"${kind === 'ours' ? ' class="strong"' : ''}>${label}</text>`;
}

const at = (x) => (LABELS + x).toFixed(1);

const escaped = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
