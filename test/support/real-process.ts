import { runInThisContext } from 'node:vm';

/**
 * Jest gives a test file a copy of `process`, on which no event ever happens. Node's own modules live outside of
 * that sandbox, and so this is the process itself.
 */
export const realProcess = runInThisContext('process') as NodeJS.Process;
