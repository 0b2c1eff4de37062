const WIDTH = 79;
const INDENT = '   ';
const TIME_WIDTH = 5;
/** A guide, a space, 22 characters and a gap: a fence with its name just fits. */
const LANE_WIDTH = 25;
const LANE_TEXT = LANE_WIDTH - 3;

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, magenta: 35, cyan: 36 } as const;
type Style = keyof typeof CODES;
const LANE_STYLES: readonly Style[] = ['cyan', 'magenta', 'yellow'];

export interface StageOptions {
  readonly lanes: readonly string[];
  readonly colours: boolean;
  readonly write: (line: string) => void;
  readonly now?: () => number;
}

/** Where the demo is seen: 80 columns, one lane per instance, and below each scene what was checked. */
export class Stage {
  readonly #options: StageOptions;
  readonly #now: () => number;
  readonly #ended = new Set<string>();
  #sceneBegan = 0;
  #checks = 0;
  #failures = 0;

  constructor(options: StageOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  get checks(): number {
    return this.#checks;
  }

  /** Of them, those that did not hold. */
  get failures(): number {
    return this.#failures;
  }

  title(title: string, ...paragraphs: readonly string[]): void {
    this.#line();
    this.#line(this.#style('bold', title));
    for (const paragraph of paragraphs) this.#paragraph(paragraph);
  }

  /** A numbered headline, what to look at, and the names above the lanes. */
  scene(number: number, headline: string, look: string): void {
    this.#rule();
    this.#line(this.#style('bold', `${number}  ${headline}`));
    this.#paragraph(look);
    this.#line();
    const names = this.#options.lanes.map((lane) => {
      const isGone = this.#ended.has(lane);
      const name = isGone ? `${lane} (gone)` : lane;
      return this.#style(isGone ? 'dim' : this.#styleOf(lane), this.#fit(lane, name));
    });
    this.#line(' '.repeat(TIME_WIDTH) + names.join(''));
    this.#sceneBegan = this.#now();
  }

  /** Something happened to an instance, now. */
  happens(lane: string, text: string): void {
    const seconds = ((this.#now() - this.#sceneBegan) / 1_000).toFixed(1);
    wrap(text, LANE_TEXT).forEach((part, at) => {
      const time = (at === 0 ? `${seconds}s` : '').padEnd(TIME_WIDTH);
      const cells = this.#options.lanes.map((one) => this.#cell(one, one === lane ? part : ''));
      this.#line(this.#style('dim', time) + cells.join(''));
    });
  }

  /** From here on its lane is empty. */
  laneEnds(lane: string): void {
    this.#ended.add(lane);
  }

  /** Words that were really said: an answer, an error. */
  quote(...lines: readonly string[]): void {
    this.#line();
    for (const part of lines.flatMap((line) => wrap(line, WIDTH - TIME_WIDTH - 2))) {
      this.#line(`${' '.repeat(TIME_WIDTH)}${this.#style('dim', '>')} ${part}`);
    }
  }

  space(): void {
    this.#line();
  }

  /** Says it with a tick when it holds, with a cross when it does not: never without having looked. */
  check(holds: boolean, claim: string, instead = ''): void {
    this.#checks++;
    if (!holds) this.#failures++;
    const mark = holds ? this.#style('green', '✓') : this.#style('red', '✗');
    const text = holds || instead === '' ? claim : `${claim} Instead: ${instead}.`;
    wrap(text, WIDTH - INDENT.length).forEach((part, at) => {
      this.#line(at === 0 ? `${mark}  ${part}` : INDENT + part);
    });
  }

  /** The verdict. */
  end(scenes: number, took: string): void {
    this.#rule();
    const verdict =
      this.#failures === 0
        ? `✓  All ${scenes} scenes happened as claimed: ${this.#checks} checks in ${took}.`
        : `✗  ${this.#failures} of ${this.#checks} checks failed: what is marked ✗ did not happen.`;
    this.#line(this.#style(this.#failures === 0 ? 'green' : 'red', verdict));
    this.#line();
  }

  #paragraph(text: string): void {
    for (const part of wrap(text, WIDTH - INDENT.length)) this.#line(INDENT + part);
  }

  #rule(): void {
    this.#line();
    this.#line(this.#style('dim', '─'.repeat(WIDTH)));
  }

  #cell(lane: string, text: string): string {
    const guide = this.#ended.has(lane) ? ' ' : '│';
    return this.#style(this.#styleOf(lane), this.#fit(lane, `${guide} ${text}`));
  }

  #fit(lane: string, text: string): string {
    return lane === this.#options.lanes.at(-1) ? text : text.padEnd(LANE_WIDTH);
  }

  #styleOf(lane: string): Style {
    return LANE_STYLES[this.#options.lanes.indexOf(lane)] ?? 'bold';
  }

  #style(style: Style, text: string): string {
    return this.#options.colours ? `\u001B[${CODES[style]}m${text}\u001B[0m` : text;
  }

  #line(text = ''): void {
    this.#options.write(text.trimEnd());
  }
}

/** Lines of at most `width`, broken at spaces where there are any. */
export function wrap(text: string, width: number): string[] {
  const pieces = new RegExp(`.{1,${width}}`, 'gu');
  const words = text.split(' ').flatMap((word) => word.match(pieces) ?? []);
  const lines: string[] = [];
  for (const word of words) {
    const longer = `${lines.at(-1) ?? ''} ${word}`;
    if (lines.length > 0 && longer.length <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
