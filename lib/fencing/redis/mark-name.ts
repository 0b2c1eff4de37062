import { slotOf } from '../../stores/redis/cluster/slot.js';

/**
 * The name of a resource's mark: in the slot of the key that is named as the resource is, so that a cluster lets one
 * script use both. `keyPrefix` is what the client puts before every key: it counts for the slot, and is not written
 * here.
 */
export function markName(prefix: string, resource: string, keyPrefix: string): string {
  const key = `${keyPrefix}${resource}`;
  const tag = tagFor(key);
  // Behind the braces stands nothing, or the resource: no two resources have the same name.
  return tag === key ? `${prefix}:{${tag}}` : `${prefix}:{${tag}}:${resource}`;
}

/** Whether a key could be the mark of some resource. */
export const isMarkName = (prefix: string, key: string): boolean => key.startsWith(`${prefix}:{`);

/** What in braces has the slot of the key. */
function tagFor(key: string): string {
  const [, tag = key] = /^[^{]*\{([^}]+)\}/.exec(key) ?? [];
  // A brace that closes nothing counts in the key, but would end the tag.
  return tag.includes('}') ? substituteFor(slotOf(key)) : tag;
}

const substitutes = new Map<number, string>();

/** Another text with that slot. One in sixteen thousand has it. */
function substituteFor(slot: number): string {
  let tag = substitutes.get(slot);
  for (let n = 0; tag === undefined; n++) if (slotOf(`#${n}`) === slot) tag = `#${n}`;
  substitutes.set(slot, tag);
  return tag;
}
