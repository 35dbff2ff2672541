/** The scripted engine behind the real API, in a state folder of its own, for the command line to find. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listen } from "../../src/interfaces/api/listen.ts";
import type { Engine } from "../../src/interfaces/operations/operations.ts";

export interface ScriptedServer {
  readonly home: string;
  close(): Promise<void>;
}

export async function serve(engine: Engine): Promise<ScriptedServer> {
  const home = mkdtempSync(join(tmpdir(), "viv-cli-"));
  const server = await listen(engine, { version: "0.0.0", socketPath: join(home, "viv.sock"), onError: () => undefined });
  return {
    home,
    async close() {
      await server.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
