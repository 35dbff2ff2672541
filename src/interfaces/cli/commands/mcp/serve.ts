import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { readVersion } from "../../../../base/config/machine.ts";
import { findPaths } from "../../../../base/config/paths.ts";
import { loadUserConfig } from "../../../../base/config/project-config.ts";
import { TOOL_NAMES, TOOL_SETS } from "../../../../base/schema/mcp.ts";
import { realFolder } from "../../../mcp/projects.ts";
import { serveStdio } from "../../../mcp/stdio.ts";
import { command, type Invocation, type OptionDeclarations } from "../../command.ts";
import { definedOnly } from "../../defined-only.ts";
import { toolsOf } from "../../mcp-tools.ts";

const OPTIONS = {
  tools: {
    type: "text",
    value: "NAMES",
    completes: [...Object.keys(TOOL_SETS), ...TOOL_NAMES],
    summary: "Tools and sets of them (default, desktop, notebook), with commas between; default if left out",
  },
  project: { type: "list", short: "p", value: "PATH", completes: "path", summary: "A folder that the client may name as a project" },
  here: { type: "flag", summary: "The folder that the client starts this in is such a project, too" },
  "answer-within": {
    type: "duration",
    value: "TIME",
    summary: "For a client that waits less than 25s for a tool: give it a handle by then",
  },
} as const satisfies OptionDeclarations;

/** A home folder is no project, whichever folder a client happens to start in. */
function projectsOf({ options, cwd, env }: Pick<Invocation<typeof OPTIONS>, "options" | "cwd" | "env">): string[] {
  const home = realFolder(env["HOME"] ?? homedir());
  const here = options.here && ![home, "/"].includes(realFolder(cwd)) ? [cwd] : [];
  const named = [...options.project.map((path) => resolve(cwd, path)), ...here, ...loadUserConfig(findPaths(env).config).mcp.projects];
  return [...new Set(named.flatMap((path) => realFolder(path) ?? []))];
}

/** What the person answers in their client counts as what they type on a terminal: both act with the rights of the same user. */
function approver(env: Invocation["env"]): string | undefined {
  try {
    return readFileSync(join(findPaths(env).home, "approver-token"), "utf8").trim();
  } catch {
    return undefined;
  }
}

async function run({ options, cwd, env, client }: Invocation<typeof OPTIONS>): Promise<void> {
  const ending = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, () => ending.abort());
  await serveStdio(
    {
      version: readVersion(),
      client,
      env: definedOnly(env),
      projects: projectsOf({ options, cwd, env }),
      downloads: env["XDG_DOWNLOAD_DIR"] ?? join(env["HOME"] ?? homedir(), "Downloads"),
      tools: toolsOf(options.tools),
      answerWithinMs: options["answer-within"],
      key: randomBytes(32),
    },
    () => approver(env),
    { input: process.stdin, output: process.stdout },
    ending.signal,
  );
}

export default command({
  name: "mcp",
  summary: "Serve Vivarium's tools to a chat client over standard input and output (MCP)",
  details:
    "A chat client starts this by itself; `viv mcp install` writes that into the client's settings. It joins the running server, or starts one. Tasks that it began go on when it ends.",
  examples: [
    ["viv mcp install claude", "set a client up"],
    ["viv mcp --project ~/shop", "serve, and let the client name this folder as a project"],
    ["viv mcp --tools execute_task,wait,download_files", "serve three tools"],
    ["viv mcp --tools default,desktop,notebook", "serve the usual ones, and those for screens and for Python piece by piece"],
  ],
  options: OPTIONS,
  positionals: [],
  run,
});
