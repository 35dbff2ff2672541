import { findPaths } from "../../config/paths.ts";
import { command } from "../command.ts";
import { connectIfRunning } from "../connect.ts";
import { ago, bytes, clean } from "../text.ts";

export default command({
  name: "status",
  summary: "Show the server and its machine",
  details: "Does not start the server: without one it says so, and the exit code is 0 all the same.",
  examples: [["viv status", "is it there, where is its state, how full is the machine"]],
  options: {},
  positionals: [],
  async run({ json, screen, env }) {
    const client = await connectIfRunning(env);
    const paths = findPaths(env);
    if (client === undefined) {
      if (json) screen.json({ running: false, home: paths.home, log: paths.log });
      else screen.print(`No server runs for ${clean(paths.home)}. Any command that needs one starts it.`);
      return;
    }
    const status = await client.call("status", {});
    client.close();
    if (json) return screen.json({ running: true, ...status });
    const counts = Object.entries(status.sandboxes).filter(([, count]) => count > 0);
    screen.fields([
      ["server", `${screen.paint("green", "runs")}, process ${status.pid}, version ${status.version}, started ${ago(status.startedAt)}`],
      ["state", clean(status.home)],
      ["log", clean(status.log)],
      ["listens on", status.listen ?? "its socket alone"],
      ["walls", status.driver === "none" ? screen.paint("red", "none (see `viv doctor`)") : `${status.driver}, as ${status.mode}`],
      ["storage", status.storage],
      ["limits", status.limitsHeld],
      ["sandboxes", counts.map(([state, count]) => `${count} ${state}`).join(", ") || "none"],
      ["memory", `${bytes(status.memory.freeBytes)} free of ${bytes(status.memory.totalBytes)}`],
      ["disk", `${bytes(status.disk.freeBytes)} free of ${bytes(status.disk.totalBytes)}`],
    ]);
  },
});
