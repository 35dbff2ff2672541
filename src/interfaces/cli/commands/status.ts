import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findPaths } from "../../../base/config/paths.ts";
import { command } from "../command.ts";
import { connectIfRunning } from "../connect.ts";
import type { Client } from "../../client/client.ts";
import type { Screen } from "../screen.ts";
import { ago, bytes, clean, plural } from "../text.ts";

const LETTERS = { added: "A", changed: "M", deleted: "D" } as const;

async function showSandbox(client: Client, screen: Screen, sandbox: string, json: boolean): Promise<void> {
  const status = await screen.during("Comparing with reality", client.call("sandboxStatus", { sandbox }));
  if (json) return screen.json(status);
  const both = status.changes.filter(({ changedInside }) => changedInside).length;
  screen.fields([
    ["sandbox", `${clean(status.name)}, ${status.state}`],
    ["cloned", ago(status.takenAt)],
    ["changed inside", plural(status.changedInside, "file")],
    ["commits since", status.commits === null ? "unknown" : String(status.commits)],
    [
      "moved since",
      `${plural(status.changes.length, "path")}${status.more ? " and more" : ""}${both === 0 ? "" : `, ${both} of them changed inside, too`}`,
    ],
  ]);
  for (const { path, status: what, changedInside } of status.changes) {
    screen.print(`${LETTERS[what]}  ${clean(path)}${changedInside ? screen.paint("yellow", "  (changed inside, too)") : ""}`);
  }
}

/** Promotions that a crash interrupted, read from the state folder while no server runs. */
function interrupted(home: string): string[] {
  const folder = join(home, "transactions");
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter((id) => existsSync(join(folder, id, "begun")) && !existsSync(join(folder, id, "finished")));
}

async function pendingPromotions(client: Client): Promise<string[]> {
  const { promotions } = await client.call("listPromotions", {});
  return promotions.filter(({ pending }) => pending).map(({ id }) => id);
}

function warnOfPending(screen: Screen, pending: readonly string[], what: string): void {
  for (const id of pending)
    screen.warn(`Promotion ${clean(id)} is not finished: some files of its project may be old and some new. ${what}`);
}

export default command({
  name: "status",
  summary: "Show the server and its machine, or compare a sandbox with reality",
  details:
    "This does not start the server: if none runs, it says so, and the exit code is still 0. For a sandbox it says how old its view of the project is, what changed in the real project since, and which of these files the sandbox changed, too. It names interrupted promotions first.",
  examples: [
    ["viv status", "is it there, where is its state, how full is the machine"],
    ["viv status try", "how stale the sandbox is"],
  ],
  options: {},
  positionals: [{ name: "SANDBOX", summary: "Id or name", optional: true, completes: "sandbox" }],
  async run({ positionals: [sandbox], json, screen, env, client: connect }) {
    if (sandbox !== undefined) return showSandbox(await connect(), screen, sandbox, json);
    const client = await connectIfRunning(env);
    const paths = findPaths(env);
    if (client === undefined) {
      const pending = interrupted(paths.home);
      if (json) return screen.json({ running: false, home: paths.home, log: paths.log, pendingPromotions: pending });
      warnOfPending(screen, pending, "Run `viv up`: it is brought to its end or back before the server answers.");
      screen.print(`No server runs for ${clean(paths.home)}. Any command that needs one starts it.`);
      return;
    }
    const status = await client.call("status", {});
    const pending = await pendingPromotions(client);
    client.close();
    if (json) return screen.json({ running: true, ...status, pendingPromotions: pending });
    warnOfPending(screen, pending, "The server is at it; `viv promotions` shows where it stands.");
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
