/** How many there are. */
export const SLOTS = 16_384;

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0);
  return crc & 0xffff;
});

/** The slot of a name in Redis: CRC16 (XMODEM) of its hash tag, or of all of it when it has none. */
export function slotOf(name: string): number {
  const open = name.indexOf('{');
  const close = open < 0 ? -1 : name.indexOf('}', open + 1);
  const tag = close > open + 1 ? name.slice(open + 1, close) : name;
  let crc = 0;
  for (const byte of Buffer.from(tag)) crc = ((crc << 8) & 0xffff) ^ TABLE[(crc >> 8) ^ byte]!;
  return crc % SLOTS;
}

/** By slot: a number that lies in it. */
const tags: (string | undefined)[] = [];
let tried = 0;

/** A hash tag of a slot. Those of all slots are found among the first 150,000 numbers or so. */
export function tagOf(slot: number): string {
  for (; tags[slot] === undefined; tried++) tags[slotOf(`${tried}`)] ??= `${tried}`;
  return tags[slot];
}
