/** The bench's side of `spawner.mjs`. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("spawner.mjs", import.meta.url));

interface Answer {
  readonly ms?: number;
  readonly code?: number | null;
  readonly signal?: string | null;
  readonly error?: string;
}

export interface SpawnOptions {
  readonly cwd?: string;
  /** "pipe" is what child_process.spawn does by itself; "ignore" is cheaper, and fair to peers that need no pipe. */
  readonly stdio?: "pipe" | "ignore";
  /** A file that is its standard input. */
  readonly input?: string;
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly okCodes?: readonly number[];
}

export class Spawner {
  readonly #child: ChildProcess;
  readonly #lines: Interface;
  readonly #ended: Promise<undefined>;

  /** `wrapper` is a command that ends by executing the words after it. */
  constructor(wrapper: readonly string[] = []) {
    const [program, ...args] = [...wrapper, process.execPath, PROGRAM] as const;
    this.#child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#ended = once(this.#child, "exit").then(() => undefined);
    if (this.#child.stdout === null) throw new Error("the spawner has no output");
    this.#lines = createInterface({ input: this.#child.stdout });
  }

  /** Milliseconds from the start of a program to its end. */
  async run(command: readonly string[], options: SpawnOptions = {}): Promise<number> {
    const { cwd = "/", stdio = "ignore", env = {}, input, okCodes = [0] } = options;
    const answered = Promise.race([once(this.#lines, "line"), this.#ended]);
    this.#child.stdin?.write(`${JSON.stringify({ command, cwd, stdio, env, input })}\n`);
    const [line] = (await answered) ?? [];
    if (typeof line !== "string") throw new Error("the spawner has ended");
    const { ms, code, signal, error } = JSON.parse(line) as Answer;
    if (ms === undefined) throw new Error(`${command[0] ?? ""}: ${error ?? "no answer"}`);
    if (typeof code !== "number" || !okCodes.includes(code))
      throw new Error(`${command.join(" ")} ended with ${signal ?? `exit code ${code ?? ""}`}`);
    return ms;
  }

  async close(): Promise<void> {
    this.#child.stdin?.end();
    await this.#ended;
  }
}
