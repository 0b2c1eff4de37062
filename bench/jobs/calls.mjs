import { cpuMicroseconds } from '../harness/cpu-time.mjs';
import { now } from '../harness/clock.mjs';

/** One of the ways to call a method, over and over. */
export async function calls({ ways }, { way, ms, atATime = 100 }) {
  const call = ways[way];
  const start = now();
  const until = start + ms * 1e3;
  let count = 0;
  do {
    for (let i = 0; i < atATime; i++) await call();
    count += atATime;
  } while (now() < until);
  return { count, us: now() - start };
}

/** The same, with the processor time that it takes here and in the server's process. */
export async function callsProfiled(opened, params) {
  const server = cpuMicroseconds(opened.serverPid);
  const node = process.cpuUsage();
  const figures = await calls(opened, params);
  const { user, system } = process.cpuUsage(node);
  return { ...figures, cpu: user + system + cpuMicroseconds(opened.serverPid) - server };
}
