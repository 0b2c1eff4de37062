import { BAD_OPTION, BAD_OPTIONS, UNKNOWN_OPTION } from '../../lease.messages.js';

/** The options with their defaults; one that is misspelt or no boolean is named. */
export function withDefaults<Options extends object>(
  options: Options,
  defaults: Required<Options>,
): Required<Options> {
  if (typeof options !== 'object' || options === null) throw new TypeError(BAD_OPTIONS(options));
  const all: Record<string, unknown> = { ...defaults };
  for (const [option, value] of Object.entries(options)) {
    if (!Object.hasOwn(defaults, option)) {
      throw new TypeError(UNKNOWN_OPTION(option, Object.keys(defaults)));
    }
    if (value === undefined) continue;
    if (typeof all[option] === 'boolean' && typeof value !== 'boolean') {
      throw new TypeError(BAD_OPTION(option, value, 'true or false'));
    }
    all[option] = value;
  }
  return all as Required<Options>;
}
