import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { buffer } from "node:stream/consumers";
import { NETWORK_MODES } from "../../../base/schema/choices.ts";
import type { InputOf } from "../../../base/schema/contracts.ts";
import { VivError } from "../../../base/schema/errors.ts";
import type { Job } from "../../../base/schema/job.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { Client } from "../../client/client.ts";
import { LANGUAGE_NAMES, languageOf } from "../code-language.ts";
import { command, type OptionDeclarations, type OptionValues } from "../command.ts";
import type { Screen } from "../screen.ts";
import { bytes } from "../text.ts";
import { usageError } from "../values.ts";

const OPTIONS = {
  lang: {
    type: "text",
    short: "l",
    value: "LANGUAGE",
    completes: LANGUAGE_NAMES,
    summary: "python, ts or sh; by the file's ending or its first line if left out",
  },
  project: {
    type: "text",
    short: "p",
    value: "PATH",
    completes: "path",
    summary: "Run in a clone of this project instead of an empty workspace",
  },
  timeout: { type: "duration", value: "TIME", summary: "End the code after this time; 10m if left out. The exit code is 124 then" },
  cpus: { type: "number", value: "N", summary: "CPU cores at most" },
  memory: { type: "size", value: "SIZE", summary: "Memory at most" },
  network: { type: "text", value: "MODE", completes: NETWORK_MODES, summary: `What it reaches: ${NETWORK_MODES.join(", ")}` },
  priority: { type: "integer", value: "N", summary: "Of jobs that wait, those with the larger number begin first; 0 if left out" },
  keep: { type: "flag", short: "k", summary: "Keep the sandbox; its name is printed on stderr" },
  detach: { type: "flag", short: "d", summary: "Print the id of the job and leave; `viv jobs show ID` shows what became of it" },
} as const satisfies OptionDeclarations;

/** Exit code where no code ran: as of a program that can't be started. */
const NOT_RUN = 125;
const INTERRUPTED = 130;

async function readCode(file: string | undefined): Promise<string> {
  if ((file === undefined || file === "-") && process.stdin.isTTY)
    throw usageError("There is no code.", "Name a file, or send the code: `echo 'print(1)' | viv code --lang python`.");
  const code = await (file === undefined || file === "-"
    ? buffer(process.stdin)
    : readFile(file).catch((error: unknown) => unreadable(file, error)));
  if (code.length > LIMITS.jobCodeBytes)
    throw new VivError("too_large", `The code has ${bytes(code.length)}; ${bytes(LIMITS.jobCodeBytes)} are allowed.`, {
      remedy: "Put what is large into a project, and name that with --project.",
    });
  return code.toString("utf8");
}

function unreadable(file: string, error: unknown): never {
  const why = (error as NodeJS.ErrnoException).code ?? String(error);
  throw new VivError("file_not_found", `${file} can't be read: ${why}.`, { cause: error, remedy: "Check the path on this machine." });
}

function jobInput(
  options: OptionValues<typeof OPTIONS>,
  cwd: string,
  code: Pick<InputOf<"scheduleJob">, "kind" | "code">,
): InputOf<"scheduleJob"> {
  const { project, timeout, cpus, memory, network, priority, keep } = options;
  const limits = { ...(cpus === undefined ? {} : { cpus }), ...(memory === undefined ? {} : { memory_bytes: memory }) };
  return {
    ...code,
    keep_sandbox: keep,
    ...(project === undefined ? {} : { project: resolve(cwd, project) }),
    ...(timeout === undefined ? {} : { timeout_seconds: timeout / 1000 }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    // The server knows which modes there are.
    ...(network === undefined ? {} : { network: network as (typeof NETWORK_MODES)[number] }),
    ...(priority === undefined ? {} : { priority }),
  };
}

/** Its output as it comes, unless the caller wants it at the end. */
async function follow(server: Client, job: string, screen: Screen, quiet: boolean): Promise<Job> {
  for await (const part of server.jobOutput(job, new AbortController().signal)) {
    if ("ended" in part) return part.ended;
    if (quiet) continue;
    if ("dropped" in part) screen.warn(`viv: ${part.dropped} bytes of output were dropped.`);
    else process[part.stream].write(Buffer.from(part.data, "base64"));
  }
  throw new VivError("server_unreachable", "The server stopped; the job goes on.", {
    remedy: `\`viv jobs show ${job}\` shows what became of it.`,
  });
}

export default command({
  name: "code",
  summary: "Run a piece of Python, TypeScript or shell code in a sandbox of its own",
  details:
    "The code is a job: it runs in an empty /workspace on a read-only system as a user without rights, or in a clone of a project, and its sandbox is thrown away at the end. TypeScript runs by the Node of viv, as an ES module. The exit code is that of the code. Ctrl-C ends the job; if viv itself is killed, the job goes on and `viv jobs` shows it. What the code reads from stdin is empty.",
  examples: [
    ["viv code script.py", "Python, by the file's ending"],
    ["echo 'console.log(await fetch(\"http://example.com\"))' | viv code --lang ts", "TypeScript from stdin"],
    ["viv code --project . --timeout 2m check.sh", "in a clone of this project"],
    ["viv code --json script.py", "state, exit code and output, for programs"],
  ],
  options: OPTIONS,
  positionals: [{ name: "FILE", summary: "File with the code; stdin if left out or `-`", optional: true, completes: "path" }],
  async run({ options, positionals: [file], json, screen, cwd, client }) {
    const code = await readCode(file);
    const kind = languageOf(options.lang, file, code);
    const server = await client();
    const { job_id: job } = await server.call("scheduleJob", jobInput(options, cwd, { kind, code }));
    if (options.detach) {
      if (json) screen.json({ job_id: job });
      else screen.print(job);
      return;
    }
    const cancel = (): void => void server.call("cancelJob", { job }).catch(() => undefined);
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, cancel);
    const { cause, reason, exitCode, sandbox } = await follow(server, job, screen, json);
    if (json) screen.json(await server.call("inspectJob", { job }));
    else if (options.keep && sandbox !== null) screen.say(`viv: kept as ${(await server.call("findSandbox", { sandbox })).name}.`);
    if (cause === "cancelled" || reason === "The job was cancelled.") return INTERRUPTED;
    return exitCode ?? NOT_RUN;
  },
});
