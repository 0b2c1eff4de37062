/** @param {{ columns: readonly string[], rows: readonly (readonly string[])[] }} table */
export function table({ columns, rows }) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const rule = columns.map((_, i) => (i === 0 ? '---' : '--:'));
  return [line(columns), `|${rule.join('|')}|`, ...rows.map(line)].join('\n');
}

export function section({ title, about, tables }, result) {
  const parts = tables(result).map((one) =>
    [one.title ? `### ${one.title}\n` : '', table(one), one.note ? `\n${one.note}` : '']
      .filter(Boolean)
      .join('\n'),
  );
  return [`## ${title}`, about, ...parts].join('\n\n');
}
