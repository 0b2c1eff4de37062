const AT_ONCE = 20;
const nothing = async () => {};

/**
 * So many calls as the compiler needs to be done with them. By their number and not by time: what is slow at first
 * needs longer, and would be measured unfinished.
 */
export async function warmUp({ cycle, turn }, { key, calls }) {
  const call = cycle ?? ((own) => turn(own, nothing));
  let left = calls;
  const loop = async (own) => {
    while (left-- > 0) await call(own);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => loop(`${key}:${i}`)));
  // And one after the other, which is another path through the client.
  for (let i = 0; i < calls / 5; i++) await call(key);
  return {};
}
