/**
 * The package as users get it: installs the tarball into small applications, compiles, boots and uses them.
 * `node test/tarball/run.mjs <tarball>`
 */
import { execFile, spawn } from 'node:child_process';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ensureRedisServer } from '../support/find-servers.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const applications = ['nest12-esm', 'nest11-cjs'];
const TIMEOUT = 30_000;

if (!process.argv[2]) {
  console.error('usage: node test/tarball/run.mjs <tarball>');
  process.exit(2);
}
const tarball = resolve(process.argv[2]);
const redisServer = ensureRedisServer();

for (const name of applications) {
  const start = performance.now();
  const folder = mkdtempSync(join(tmpdir(), `nestjs-lease-${name}-`));
  try {
    cpSync(join(here, name), folder, { recursive: true });
    await install(folder);
    await command(folder, process.execPath, ['node_modules/typescript/bin/tsc']);
    const versions = await installedVersions(folder);
    await useApplication(folder);
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    console.log(`ok ${name} (${versions}) ${seconds} s`);
  } catch (error) {
    console.error(`FAIL ${name}: ${error.stack}`);
    process.exitCode = 1;
    break;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function install(folder) {
  const quiet = ['--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'];
  await command(folder, 'npm', ['install', '--include=dev', '--prefer-offline', ...quiet, tarball]);
}

async function installedVersions(folder) {
  const packages = ['@nestjs/core', '@nestjs/schedule', 'ioredis'];
  const { stdout } = await command(folder, 'npm', ['ls', '--json', ...packages]);
  const { dependencies } = JSON.parse(stdout);
  return packages.map((name) => `${name} ${dependencies[name].version}`).join(', ');
}

async function useApplication(folder) {
  const redis = await startRedis(folder);
  const app = startProcess(process.execPath, ['dist/main.js'], {
    cwd: folder,
    env: { ...process.env, REDIS_URL: `redis://127.0.0.1:${redis.port}` },
  });
  try {
    const { url } = await app.line((line) => tryJson(line)?.url && tryJson(line));
    await aCronHandlerRanWithAFence(app);
    await oneOfTwoRequestsIsRefused(url);
    app.child.stdin.end();
    assert.deepEqual(await within(app.exit, 'the application to exit by itself'), [0, null]);
  } catch (error) {
    error.stack += `\nThe application said:\n${app.output()}`;
    throw error;
  } finally {
    app.child.kill('SIGKILL');
    redis.child.kill('SIGKILL');
    await Promise.all([app.exit, redis.exit]);
  }
}

async function aCronHandlerRanWithAFence(app) {
  const { fence } = await app.line((line) => tryJson(line)?.fence !== undefined && tryJson(line));
  assert.ok(Number.isSafeInteger(fence) && fence > 0, `not a fence: ${fence}`);
}

async function oneOfTwoRequestsIsRefused(url) {
  const pay = () => fetch(`${url}/pay/42`, { method: 'POST' });
  const answers = await Promise.all([pay(), pay()]);
  const [paid, refused] = answers.toSorted((a, b) => a.status - b.status);
  assert.deepEqual([paid.status, refused.status], [201, 409]);
  assert.deepEqual(await paid.json(), { paid: '42' });
  assert.equal((await refused.json()).code, 'LEASE_HELD');
  assert.match(refused.headers.get('retry-after') ?? 'no Retry-After', /^[1-9]\d*$/);
}

async function startRedis(folder) {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const redis = startProcess(
      redisServer,
      ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
      { cwd: folder },
    );
    try {
      await redis.line((line) => line.includes('Ready to accept connections'));
      return { ...redis, port };
    } catch (error) {
      // Somebody else may have taken the port since it was found free.
      const taken = redis.output().includes('Address already in use');
      if (!taken || attempt === 5) throw error;
    }
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** A process, and a way to wait for a line of its output. It does not outlive this one. */
function startProcess(file, args, options) {
  const child = spawn(file, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
  const exit = once(child, 'exit');
  const killOnExit = () => child.kill('SIGKILL');
  process.once('exit', killOnExit);
  child.once('exit', () => process.off('exit', killOnExit));

  const lines = [];
  const waiting = new Set();
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      for (const look of waiting) look(line);
    });
  }

  /** The first truthy value that `find` gives for a line, also for one that is there already. */
  async function line(find) {
    const found = new Promise((resolve) => {
      const look = (text) => {
        const value = find(text);
        if (value) resolve(value);
      };
      lines.forEach(look);
      waiting.add(look);
    });
    const ended = exit.then(([code]) => {
      throw new Error(`${file} ended with ${code} before that:\n${lines.join('\n')}`);
    });
    return within(Promise.race([found, ended]), 'a line of output');
  }

  return { child, exit, line, output: () => lines.join('\n') };
}

async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${TIMEOUT} ms for ${what}`)), TIMEOUT);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function command(cwd, file, args) {
  try {
    return await promisify(execFile)(file, args, { cwd, encoding: 'utf8' });
  } catch (error) {
    throw new Error(`${file} ${args.join(' ')} failed\n${error.stdout}${error.stderr}`, {
      cause: error,
    });
  }
}

function tryJson(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
