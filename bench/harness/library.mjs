import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const benchFolder = dirname(dirname(fileURLToPath(import.meta.url)));
export const rootFolder = dirname(benchFolder);

/** The compiled library. BENCH_DIST names another build of it, to measure one against the other. */
export const libraryFolder = process.env.BENCH_DIST
  ? resolve(process.env.BENCH_DIST)
  : join(rootFolder, 'dist');

export const importLibrary = (file) => import(pathToFileURL(join(libraryFolder, file)).href);
