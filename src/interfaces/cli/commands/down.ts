import { findPaths } from "../../../base/config/paths.ts";
import { command } from "../command.ts";
import { connectIfRunning } from "../connect.ts";
import { shutDown } from "../shut-down.ts";

export default command({
  name: "down",
  summary: "Stop the server; sandboxes go on",
  details: "The next command that needs the server starts it again, and it finds its sandboxes. `viv rm --all` ends those.",
  examples: [["viv down", "stop it"]],
  options: {},
  positionals: [],
  async run({ json, screen, env }) {
    const client = await connectIfRunning(env);
    const stopped = client === undefined ? null : await screen.during("Stopping the server", shutDown(client, findPaths(env).socket));
    if (json) screen.json({ stopped: stopped !== null, pid: stopped?.pid ?? null });
    else if (stopped === null) screen.print("No server runs.");
    else
      screen.print(
        `The server${stopped.pid === null ? "" : ` (process ${stopped.pid})`} has stopped.${stopped.leaves ? " Sandboxes go on." : ""}`,
      );
  },
});
