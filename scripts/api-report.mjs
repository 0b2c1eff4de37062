/**
 * The public API as files in etc/, one per entry point of package.json, so that a change of it shows in a diff.
 * `--write` writes them, `--check` compares. Reads dist: build first.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const etc = join(root, 'etc');
const manifest = readJson('package.json');
const { compilerOptions } = readJson('tsconfig.json');
const write = process.argv.includes('--write');

const entryPoints = Object.entries(manifest.exports)
  .filter(([, target]) => target.types !== undefined)
  .map(([subpath, target]) => ({
    isMain: subpath === '.',
    file: `${manifest.name}${subpath.slice(1).replaceAll('/', '-')}.api.md`,
    types: join(root, target.types),
  }));

const temp = mkdtempSync(join(tmpdir(), 'nestjs-lease-api-'));
try {
  main();
} finally {
  rmSync(temp, { recursive: true, force: true });
}

function main() {
  const missing = entryPoints.find(({ types }) => !existsSync(types));
  if (missing)
    return fail(`${relative(root, missing.types)} is missing: run \`npm run build\` first.`);

  const reports = new Map(entryPoints.map((entryPoint) => [entryPoint.file, extract(entryPoint)]));
  const mainNames = exportedNames(
    reports.get(entryPoints.find(({ isMain }) => isMain)?.file) ?? '',
  );
  for (const { file, isMain } of entryPoints) {
    if (!isMain) reports.set(file, withoutForgotten(reports.get(file), mainNames));
  }

  mkdirSync(etc, { recursive: true });
  const obsolete = readdirSync(etc).filter(
    (file) => file.endsWith('.api.md') && !reports.has(file),
  );
  for (const file of obsolete) {
    if (write) rmSync(join(etc, file));
    else fail(`etc/${file} is of no entry point: run \`npm run api\`.`);
  }
  for (const [file, report] of reports) {
    const path = join(etc, file);
    if (write) writeFileSync(path, report);
    else if (!existsSync(path) || readFileSync(path, 'utf8') !== report) {
      fail(`etc/${file} is not the API that was built: run \`npm run api\` and look at the diff.`);
    }
  }
}

function extract({ file, types }) {
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: types,
      compiler: {
        // Not the project's file: it excludes dist.
        overrideTsconfig: { compilerOptions: { ...compilerOptions, noEmit: true }, files: [types] },
      },
      apiReport: {
        enabled: true,
        reportFileName: file,
        reportFolder: temp,
        reportTempFolder: join(temp, 'temp'),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: 'lf',
      messages: {
        extractorMessageReporting: {
          default: { logLevel: 'none' },
          // A type that is part of a signature and that nobody can import by name.
          'ae-forgotten-export': { logLevel: 'warning', addToApiReportFile: true },
        },
        tsdocMessageReporting: { default: { logLevel: 'none' } },
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(root, 'package.json'),
  });
  Extractor.invoke(config, {
    localBuild: true,
    messageCallback(message) {
      message.handled = true;
      if (message.logLevel === ExtractorLogLevel.Error)
        fail(message.formatMessageWithLocation(root));
    },
  });
  return readFileSync(join(temp, file), 'utf8');
}

function exportedNames(report) {
  const declarations = report.matchAll(/^export (?:declare |abstract )*(?:\w+) (\w+)/gm);
  return new Set(Array.from(declarations, ([, name]) => name));
}

/** What another entry point uses of the main one is not forgotten: users import it from there. */
function withoutForgotten(report, names) {
  return report.replaceAll(
    /^ *\/\/ Warning: \(ae-forgotten-export\) The symbol "(\w+)".*\n(?: *\/\/\n)?/gm,
    (warning, name) => (names.has(name) ? '' : warning),
  );
}

function readJson(file) {
  return JSON.parse(readFileSync(join(root, file), 'utf8'));
}

function fail(message) {
  console.error(message);
  process.exitCode = 1;
}
