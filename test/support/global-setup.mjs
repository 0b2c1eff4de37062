import { ensureServers } from './find-servers.mjs';

/** For a jest that was not started by test/run.mjs, such as an editor's. */
export default function globalSetup() {
  ensureServers();
}
