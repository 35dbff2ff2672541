/** JupyterLab for tests: the machine's own, or one that pip fetches once for a checkout; and the front end that Vivarium carries. */
import { execFile, execFileSync } from "node:child_process";
import { existsSync, realpathSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { TestOptions } from "vitest";
import { CHECKOUT } from "./compiled.ts";
import { missing, programPath } from "./skip.ts";

const VERSION = "4.6.6";
const FOLDER = join(CHECKOUT, ".cache", "jupyter");
const FETCH_MS = 15 * 60_000;

export interface RealJupyterLab {
  /** Folder with its programs. Sandboxes are clones of this machine, so it is the same inside. */
  readonly programs: string;
  /** Folders that sandboxes must see for it: a Python may lie in a home that they do not. */
  readonly expose: readonly string[];
  /** Options of a `describe` that needs it. */
  readonly needed: TestOptions;
}

async function fetched(): Promise<string> {
  const programs = join(FOLDER, "bin");
  if (existsSync(join(programs, "jupyter-lab"))) return programs;
  const run = promisify(execFile);
  try {
    await run("python3", ["-m", "venv", FOLDER]);
    await run(join(programs, "pip"), ["install", "--quiet", `jupyterlab==${VERSION}`], { timeout: FETCH_MS });
    return programs;
  } catch (error) {
    rmSync(FOLDER, { recursive: true, force: true });
    throw error;
  }
}

function found(programs: string): RealJupyterLab {
  const python = [join(programs, "python3"), programPath("python3")].find((path) => path !== undefined && existsSync(path));
  return { programs, expose: python === undefined ? [] : [dirname(dirname(realpathSync(python)))], needed: {} };
}

export async function realJupyterLab(): Promise<RealJupyterLab> {
  const own = programPath("jupyter-lab");
  if (own !== undefined) return found(dirname(own));
  try {
    return found(await fetched());
  } catch (error) {
    const [reason] = (error as Error).message.split("\n");
    return { programs: "", expose: [], needed: { skip: true, meta: { skipReason: `JupyterLab can't be fetched: ${reason}` } } };
  }
}

/** Options of a `describe` that needs the front end, which the set-up makes from npm's packages, and what serves it. */
export function carriedLab(): TestOptions {
  const skipped = (skipReason: string): TestOptions => ({ skip: true, meta: { skipReason } });
  const lacking = missing("chromium", "root", "jupyter");
  if (lacking !== undefined) return skipped(lacking);
  if (!existsSync("/usr/lib/python3/dist-packages/jupyterlab_server")) return skipped("python3-jupyterlab-server is not installed");
  execFileSync("bash", [join(CHECKOUT, "scripts", "setup.sh"), "lab"], { stdio: ["ignore", 2, 2], timeout: FETCH_MS });
  return existsSync(join(CHECKOUT, "build", "lab", "about.json")) ? {} : skipped("JupyterLab's packages can't be fetched from npm");
}
