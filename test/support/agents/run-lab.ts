/** A server with an agent that does what its task says, line by line, and no model. */
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { InputOf } from "../../../src/base/schema/contracts.ts";
import type { Run, RunEvent } from "../../../src/base/schema/run.ts";
import { eventually, TestServer } from "../server.ts";
import { viv } from "../viv.ts";

const FAKE = fileURLToPath(new URL("fake-claude.mjs", import.meta.url));
const FINAL = new Set(["completed", "failed"]);

export class RunLab {
  readonly server: TestServer;
  readonly #patienceMs: number;

  protected constructor(server: TestServer, patienceMs = 20_000) {
    this.server = server;
    this.#patienceMs = patienceMs;
  }

  static async open(config: object = {}): Promise<RunLab> {
    return RunLab.on(await TestServer.start({ config: RunLab.config(config) }));
  }

  /** What a server needs to know to have the agent. */
  static config(config: object): object {
    return { models: { anthropic: { url: "http://127.0.0.1:9", secret: "anthropic" } }, ...config };
  }

  /** With the agent in the project of a server that runs. */
  static on(server: TestServer): RunLab {
    const bin = join(server.project, "node_modules/.bin");
    mkdirSync(bin, { recursive: true });
    copyFileSync(FAKE, join(bin, "claude"));
    chmodSync(join(bin, "claude"), 0o755);
    writeFileSync(join(server.project, ".gitignore"), "node_modules\n");
    viv(server, ["secret", "set", "anthropic", "--host", "127.0.0.1:9", "--all-projects"], { input: "not-used\n" });
    return new RunLab(server);
  }

  /** Gives the agent a task; answers with the run. */
  async begin(task: readonly string[], more: Partial<InputOf<"startExperiment">> & { agent?: object } = {}): Promise<Run> {
    const { agent, ...input } = more;
    const started = await this.server.client.call("startExperiment", {
      project: this.server.project,
      attempts: [{ agent: { task: task.join("\n"), ...agent } }],
      env: { PATH: process.env["PATH"] ?? "" },
      ...input,
    });
    return this.server.client.call("inspectRun", { run: started.attempts[0]?.run ?? "" });
  }

  async until(run: string, isRight: (run: Run) => boolean, withinMs = this.#patienceMs): Promise<Run> {
    return eventually(() => this.server.client.call("inspectRun", { run }), isRight, withinMs);
  }

  async ended(run: string): Promise<Run> {
    return this.until(run, ({ state }) => FINAL.has(state), 2 * this.#patienceMs);
  }

  async events(run: string): Promise<RunEvent[]> {
    const all: RunEvent[] = [];
    for await (const event of this.server.client.runEvents(run, 0, AbortSignal.timeout(20_000))) all.push(event);
    return all;
  }

  async waitForEvent<Type extends RunEvent["type"]>(
    run: string,
    type: Type,
    isRight: (event: Extract<RunEvent, { type: Type }>) => boolean = () => true,
  ): Promise<Extract<RunEvent, { type: Type }>> {
    for await (const event of this.server.client.runEvents(run, 0, AbortSignal.timeout(this.#patienceMs)))
      if (event.type === type && isRight(event as Extract<RunEvent, { type: Type }>)) return event as Extract<RunEvent, { type: Type }>;
    throw new Error(`the run has no such event ${type}`);
  }

  async remove(): Promise<void> {
    await this.server.remove();
  }
}
