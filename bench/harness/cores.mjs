import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const allowed = coresOf('self');

/** Whether processes can be held to a core here: Linux with util-linux. */
export const canPin = allowed !== undefined && hasTaskset();

/** The core that everything pinned shares; the last one, the first is where most interrupts go. */
const lastCore = allowed?.split(/[-,]/).at(-1);

/** Holds all threads of these processes to one core, the same for all. */
export const pin = (pids) => setCores(pids, lastCore);

export const unpin = (pids) => setCores(pids, allowed);

function setCores(pids, cores) {
  if (!canPin) return;
  for (const pid of pids) {
    execFileSync('taskset', ['-a', '-c', '-p', cores, String(pid)], { stdio: 'ignore' });
  }
}

function coresOf(pid) {
  try {
    return /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  } catch {
    return undefined;
  }
}

function hasTaskset() {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
