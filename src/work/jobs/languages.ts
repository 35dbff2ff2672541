/** How the code of each kind of job becomes a command, and what it needs beside a program. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { DESKTOP_DISPLAY } from "../../base/schema/desktop.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { JobKind } from "../../base/schema/job.ts";
import type { NodeRuntime } from "./node-runtime.ts";

/** The code lies in a file of its own: it has no limit of arguments, error messages have its lines, and stdin is not used up. */
export interface CodeFile {
  readonly path: string;
  /** Working folder of the code. */
  readonly cwd: string;
}

export interface CodeCommand {
  readonly command: string[];
  readonly env: Readonly<Record<string, string>>;
}

interface Language {
  /** Name of the file inside. */
  readonly file: string;
  /** What brings its program, where that is missing. */
  readonly missing: string;
  /** Size of the desktop that is opened before it begins. */
  readonly desktop?: { readonly width: number; readonly height: number };
  command(code: CodeFile, node: NodeRuntime): Promise<CodeCommand>;
}

/** Where programs of a machine are. A job has no caller whose PATH it could have. */
export const JOB_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Programs of a desktop that code uses, and the packages that bring them. */
const DESKTOP_PROGRAMS = { Xvnc: "tigervnc-standalone-server", openbox: "openbox", xdotool: "xdotool" } as const;

const SHELL: Language = {
  file: "main.sh",
  missing: "There is no shell in this machine: `apt install bash`.",
  // A sandbox is a clone of this machine.
  command: async ({ path }) => ({ command: [existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh", path], env: {} }),
};

const LANGUAGES: Readonly<Record<JobKind, Language>> = {
  python: {
    file: "main.py",
    missing: "Python is not installed in this machine: `apt install python3`.",
    // Modules beside the working folder are found as if the code lay there, and what it prints is read while it runs.
    command: async ({ path, cwd }) => ({ command: ["python3", path], env: { PYTHONPATH: cwd, PYTHONUNBUFFERED: "1" } }),
  },
  shell: SHELL,
  gui: {
    ...SHELL,
    desktop: { width: 1280, height: 800 },
    command: async (code, node) => ({ ...(await SHELL.command(code, node)), env: { DISPLAY: DESKTOP_DISPLAY } }),
  },
  typescript: {
    file: "main.mts",
    missing: "The Node of viv can't be seen inside: keep the state folder (VIV_HOME) outside of /tmp and of private folders.",
    command: async ({ path, cwd }, runtime) => {
      const node = await runtime.path();
      const flags = ["--experimental-transform-types", "--disable-warning=ExperimentalWarning", `--import=${resolvingFrom(cwd, path)}`];
      return { command: [node, ...flags, path], env: { PATH: `${JOB_PATH}:${dirname(node)}` } };
    },
  },
};

export function languageOf(kind: JobKind): Language {
  return LANGUAGES[kind];
}

/** Throws for a kind that this machine can't run. */
export function refuseUnsupported(kind: JobKind, isThere: (path: string) => boolean = existsSync): void {
  if (languageOf(kind).desktop === undefined) return;
  const missing = Object.entries(DESKTOP_PROGRAMS).filter(
    ([program]) => !JOB_PATH.split(":").some((folder) => isThere(join(folder, program))),
  );
  if (missing.length === 0) return;
  throw new VivError(
    "unsupported",
    `A job of the kind gui needs ${missing.map(([program]) => program).join(", ")}, which this machine lacks.`,
    {
      remedy: `Run \`apt install ${missing.map(([, name]) => name).join(" ")}\` on the machine, then try again.`,
    },
  );
}

/** A module that makes Node resolve what the code imports from the working folder, where packages and other files are. */
function resolvingFrom(cwd: string, path: string): string {
  const source = `import { createRequire, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
const code = pathToFileURL(${JSON.stringify(path)}).href;
const here = pathToFileURL(${JSON.stringify(`${cwd}/main.mts`)}).href;
registerHooks({ resolve: (name, context, next) => next(name, context.parentURL === code ? { ...context, parentURL: here } : context) });
globalThis.require = createRequire(here);`;
  return `data:text/javascript,${encodeURIComponent(source)}`;
}
