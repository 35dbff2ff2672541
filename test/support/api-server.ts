/** The API over a scripted engine, on a Unix socket and on loopback. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listen, type HttpListener } from "../../src/interfaces/api/listen.ts";
import { Client } from "../../src/interfaces/client/client.ts";
import type { VivError } from "../../src/base/schema/errors.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { ScriptedEngine } from "./scripted-engine.ts";

export const TOKEN = "a-token-of-this-test";

export interface ApiServer {
  readonly engine: ScriptedEngine;
  readonly store: Store;
  readonly listening: HttpListener;
  readonly socketPath: string;
  readonly port: number;
  readonly client: Client;
  /** Defects the server heard of. */
  readonly defects: VivError[];
  close(): Promise<void>;
}

export async function startApi(): Promise<ApiServer> {
  const folder = mkdtempSync(join(tmpdir(), "viv-api-"));
  const socketPath = join(folder, "viv.sock");
  const store = await openSqliteStore(join(folder, "vivarium.db"));
  const engine = new ScriptedEngine(store);
  const defects: VivError[] = [];
  const listening = await listen(engine, {
    version: "0.0.0",
    socketPath,
    tcp: { port: 0, token: TOKEN },
    onError: (error) => defects.push(error),
  });
  const client = new Client({ socket: socketPath });
  const close = async (): Promise<void> => {
    client.close();
    await listening.close();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { engine, store, listening, socketPath, port: listening.port ?? 0, client, defects, close };
}
