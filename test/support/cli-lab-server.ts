/** The command line as a program of its own against a lab, without or on a terminal. */
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { shellLine } from "../../src/base/schema/shell-words.ts";
import { listen } from "../../src/interfaces/api/listen.ts";
import type { Lab } from "./cli-lab.ts";
import { COMMAND_LINE, COMPILED } from "./compiled.ts";

const start = `import module from "node:module"; module.enableCompileCache(process.env.VIV_TEST_CACHE); const { main } = await import(process.argv[1]); process.exitCode = await main(process.argv.slice(2));`;
const program = ["--input-type=module", "-e", start, "--", COMMAND_LINE];

export interface Result {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export async function result(child: ChildProcessWithoutNullStreams): Promise<Result> {
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: code as number | null, out, err };
}

export class LabServer {
  readonly home = mkdtempSync(join(tmpdir(), "viv-lab-"));
  readonly #lab: Lab;
  #server: Awaited<ReturnType<typeof listen>> | undefined;

  constructor(lab: Lab) {
    this.#lab = lab;
  }

  async up(): Promise<void> {
    this.#server = await listen(this.#lab.engine, {
      version: "0.0.0",
      socketPath: join(this.home, "viv.sock"),
      onError: () => undefined,
    });
  }

  async down(): Promise<void> {
    await this.#server?.close();
  }

  async remove(): Promise<void> {
    await this.down();
    rmSync(this.home, { recursive: true, force: true });
  }

  start(words: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcessWithoutNullStreams {
    return spawn(process.execPath, [...program, ...words], { cwd: this.home, env: { ...this.#environment(), ...env } });
  }

  /** Runs to the end with nothing on stdin. */
  async run(...words: string[]): Promise<Result> {
    const child = this.start(words);
    child.stdin.end();
    return result(child);
  }

  /** On a terminal of its own; keys are typed once a text has appeared. */
  async onTerminal(words: readonly string[], typed: readonly (readonly [seen: string, keys: string])[] = []): Promise<Omit<Result, "err">> {
    const line = shellLine([process.execPath, ...program, ...words]);
    const child = spawn("script", ["-qfec", `stty cols 100 rows 30; ${line}`, "/dev/null"], { cwd: this.home, env: this.#environment() });
    let out = "";
    const left = [...typed];
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
      if (left[0] !== undefined && out.includes(left[0][0])) child.stdin.write(left.shift()?.[1] ?? "");
    });
    const [code] = await once(child, "close");
    return { code: code as number | null, out };
  }

  #environment(): NodeJS.ProcessEnv {
    return { ...process.env, VIV_HOME: this.home, VIV_NO_START: "1", VIV_TEST_CACHE: COMPILED, TERM: "xterm" };
  }
}
