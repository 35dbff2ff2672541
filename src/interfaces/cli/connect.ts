/** A client of the running server, which is started first when none runs. */
import { Client } from "../client/client.ts";
import { isListening } from "../client/listening.ts";
import { findPaths, type Environment } from "../../base/config/paths.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Screen } from "./screen.ts";
import { clean } from "./text.ts";

export async function connect(screen: Screen, env: Environment): Promise<Client> {
  const paths = findPaths(env);
  if (!(await isListening(paths.socket))) {
    if (env["VIV_NO_START"]) throw new VivError("server_unreachable", "No server runs, and VIV_NO_START forbids to start one.");
    const report = (line: string): void => screen.say(`  server: ${clean(line)}`);
    const { startServer } = await import("./start.ts");
    await screen.during("Starting the server", startServer(paths, { env, report }));
  }
  return new Client({ socket: paths.socket });
}

/** A client if a server runs, without starting one. */
export async function connectIfRunning(env: Environment): Promise<Client | undefined> {
  const paths = findPaths(env);
  return (await isListening(paths.socket)) ? new Client({ socket: paths.socket }) : undefined;
}
