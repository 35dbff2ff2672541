/** The command line on a real terminal, which util-linux's script(1) makes. */
import { execFileSync, spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { shellLine } from "../../src/base/schema/shell-words.ts";
import { eventually, type TestServer } from "./server.ts";
import { PROGRAM } from "./compiled.ts";
import { vivEnvironment } from "./viv.ts";

export class Terminal {
  #shown = "";
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<unknown>;

  constructor(server: Pick<TestServer, "place" | "paths">, words: readonly string[], cwd: string = server.place, program = [PROGRAM]) {
    this.#child = spawn("script", ["-qfec", shellLine([...program, ...words]), "/dev/null"], {
      cwd,
      env: vivEnvironment(server, { TERM: "xterm", NO_COLOR: "1" }),
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream.on("data", (data: Buffer) => (this.#shown += data.toString()));
    this.#ended = once(this.#child, "close");
  }

  get shown(): string {
    return this.#shown;
  }

  /** Waits until it shows the text, typing the key again and again if there is one: a terminal may not be listening yet. */
  async until(text: string, key?: string): Promise<string> {
    const begun = this.#shown.length;
    let typed = 0;
    return eventually(
      () => {
        if (key !== undefined && performance.now() - typed > 200) {
          this.#child.stdin.write(key);
          typed = performance.now();
        }
        return this.#shown.slice(key === undefined ? 0 : begun);
      },
      (shown) => shown.includes(text),
    );
  }

  /** Once. */
  type(text: string): void {
    this.#child.stdin.write(text);
  }

  async end(): Promise<number | null> {
    await this.#ended;
    return this.#child.exitCode;
  }

  close(): void {
    this.#child.kill("SIGKILL");
  }
}

let screens = 0;

/** The same on a terminal whose screen can be looked at as a person sees it: tmux keeps it. */
export class TerminalScreen {
  readonly #socket: string;
  readonly #env: NodeJS.ProcessEnv;

  constructor(server: Pick<TestServer, "place" | "paths">, words: readonly string[]) {
    this.#socket = join(server.place, `tmux-${(screens += 1)}`);
    this.#env = vivEnvironment(server, { TERM: "xterm", NO_COLOR: "1" });
    this.#tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", shellLine([PROGRAM, ...words]));
  }

  get shown(): string {
    return this.#tmux("capture-pane", "-p");
  }

  /** Waits until it shows the text, pressing the key again and again if there is one. */
  async until(text: string, key?: string): Promise<void> {
    let pressed = 0;
    await eventually(
      () => {
        if (key !== undefined && performance.now() - pressed > 400) {
          this.#tmux("send-keys", key);
          pressed = performance.now();
        }
        return this.shown;
      },
      (shown) => shown.includes(text),
    );
  }

  close(): void {
    this.#tmux("kill-server");
  }

  #tmux(...words: string[]): string {
    return execFileSync("tmux", ["-S", this.#socket, ...words], { env: this.#env, encoding: "utf8" });
  }
}
