import { findCell } from "../../../base/config/machine.ts";
import { findPaths, type Environment } from "../../../base/config/paths.ts";
import type { Client } from "../../client/client.ts";
import { diagnose } from "../../../base/host/doctor.ts";
import { examineMachine } from "../../../base/host/machine.ts";
import { VivError } from "../../../base/schema/errors.ts";
import type { Doctor } from "../../../base/schema/server.ts";
import { agentCaller } from "../agent-caller.ts";
import { command } from "../command.ts";
import { connectIfRunning } from "../connect.ts";
import type { Screen } from "../screen.ts";
import { shutDown } from "../shut-down.ts";
import { clean } from "../text.ts";

const MARKS = { good: ["✓", "green"], reduced: ["!", "yellow"], missing: ["✗", "red"] } as const;
const WALLS = {
  root: "Sandboxes here are clones of the whole machine, with all its users.",
  user: "Sandboxes here are clones of the whole machine with one user: you.",
  none: "This machine offers no walls: only `--unwalled` copies of a folder are possible.",
} as const;

/** The server's report; if no server can start, the reason, and what this process itself finds on the machine. */
async function look(client: () => Promise<Client>, env: Environment, cwd: string): Promise<Doctor> {
  try {
    return await (await client()).call("doctor", agentCaller(env, cwd));
  } catch (error) {
    const { message, remedy } = VivError.from(error);
    const cell = findCell(env);
    const report = diagnose({
      machine: await examineMachine(cell, findPaths(env).home),
      cell,
      storage: undefined,
      limits: undefined,
      groups: undefined,
    });
    return { ...report, findings: [{ check: "server", verdict: "missing", detail: message, remedy }, ...report.findings] };
  }
}

/** A server that runs has its database open: it ends first, and sandboxes go on. */
async function repair(screen: Screen, env: Environment): Promise<void> {
  const paths = findPaths(env);
  const running = await connectIfRunning(env);
  if (running !== undefined) await shutDown(running, paths.socket);
  const { startServer } = await import("../start.ts");
  await startServer(paths, { flags: ["--repair"], env, report: (line) => screen.say(`  server: ${clean(line)}`) });
}

export default command({
  name: "doctor",
  summary: "Say what this machine can do, and what to change for more",
  details:
    "The exit code is 1 if the machine offers no walls, or if the server can't start. `--repair` starts the server anew; if its database is damaged, the newest backup takes its place and the damaged files are kept beside it. Backups are made once a day and before a new version changes the database.",
  examples: [
    ["viv doctor", "all findings, with what to do"],
    ["viv doctor --repair", "bring a damaged database back from its newest backup"],
  ],
  options: { repair: { type: "flag", summary: "Bring a damaged database back from its newest backup" } },
  positionals: [],
  async run({ options, json, screen, env, cwd, client }) {
    if (options.repair) await screen.during("Starting the server anew", repair(screen, env));
    const report = await screen.during("Looking at the machine", look(client, env, cwd));
    const code = report.mode !== "none" && report.findings.every(({ check }) => check !== "server") ? 0 : 1;
    if (json) {
      screen.json(report);
      return code;
    }
    for (const finding of report.findings) {
      const [mark, colour] = MARKS[finding.verdict];
      screen.print(`${screen.paint(colour, mark)} ${finding.check}: ${clean(finding.detail)}`);
      // A remedy may be a profile to copy, so its lines stay lines.
      for (const line of finding.remedy?.split("\n") ?? []) screen.print(`    ${clean(line)}`);
    }
    screen.print(`\n${WALLS[report.mode]}`);
    return code;
  },
});
