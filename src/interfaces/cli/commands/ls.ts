import { resolve } from "node:path";
import { command } from "../command.ts";
import { SANDBOX_STATES } from "../../../base/schema/choices.ts";
import type { Sandbox } from "../../../base/schema/sandbox.ts";
import type { Screen } from "../screen.ts";
import { ago, until } from "../text.ts";
import { startText } from "../starting-point.ts";

const ENDED: ReadonlySet<string> = new Set(["completed", "failed"]);

export function isEnded(state: Sandbox["state"]): boolean {
  return ENDED.has(state);
}

export function paintState(screen: Screen, text: string, state: string): string {
  if (state === "running") return screen.paint("green", text);
  if (state === "failed") return screen.paint("red", text);
  return state === "completed" ? screen.paint("dim", text) : screen.paint("yellow", text);
}

/** "running", "running UNWALLED", "completed (timeout)". */
export function stateText(sandbox: Sandbox): string {
  const outcome = sandbox.outcome !== null && sandbox.outcome !== "done" && sandbox.outcome !== "failed" ? ` (${sandbox.outcome})` : "";
  return `${sandbox.state}${outcome}${sandbox.walled ? "" : " UNWALLED"}`;
}

function stopsText({ state, uses, expiresAt }: Sandbox): string {
  if (isEnded(state)) return "-";
  return uses.length > 0 && expiresAt !== null ? "in use" : until(expiresAt);
}

export default command({
  name: "ls",
  summary: "List sandboxes",
  examples: [
    ["viv ls", "the sandboxes there are"],
    ["viv ls --state running --quiet", "only names, for scripts"],
    ["viv ls --project .", "only those of this project's folder"],
  ],
  options: {
    state: {
      type: "text",
      completes: SANDBOX_STATES,
      short: "s",
      value: "STATE",
      summary: "Only those in this state, such as running, paused or failed",
    },
    project: { type: "text", short: "p", value: "PATH", completes: "path", summary: "Only those of this project" },
    quiet: { type: "flag", short: "q", summary: "Print names only" },
  },
  positionals: [],
  async run({ options, json, screen, cwd, client }) {
    const { sandboxes } = await (
      await client()
    ).call("listSandboxes", {
      ...(options.state === undefined ? {} : { state: options.state as Sandbox["state"] }),
      ...(options.project === undefined ? {} : { project: resolve(cwd, options.project) }),
    });
    if (json) return screen.json({ sandboxes });
    if (options.quiet) {
      for (const sandbox of sandboxes) screen.print(sandbox.name);
      return;
    }
    if (sandboxes.length === 0) return screen.say("No sandboxes. Make one with `viv create`.");
    screen.table(sandboxes, [
      { title: "NAME", value: (sandbox) => sandbox.name },
      {
        title: "STATE",
        value: stateText,
        paint: (cell, sandbox) => (sandbox.walled ? paintState(screen, cell, sandbox.state) : screen.paint("yellow", cell)),
      },
      { title: "PROJECT", value: startText, shrinks: true },
      { title: "CREATED", value: (sandbox) => ago(sandbox.createdAt) },
      { title: "STOPS", value: (sandbox) => stopsText(sandbox) },
    ]);
  },
});
