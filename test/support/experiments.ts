/** Experiments through the API, waited for. */
import type { InputOf, OutputOf } from "../../src/base/schema/contracts.ts";
import { eventually, type TestServer } from "./server.ts";

export type ShownExperiment = OutputOf<"inspectExperiment">;
type ShownAttempt = ShownExperiment["attempts"][number];

const ENDED = ["done", "failed", "cancelled", "choosing"];

export class Lab {
  readonly server: TestServer;

  constructor(server: TestServer) {
    this.server = server;
  }

  /** Starts attempts: shell lines, called a, b, c and so on. */
  async start(lines: readonly string[], options: Partial<InputOf<"startExperiment">> = {}): Promise<ShownExperiment> {
    const attempts = lines.map((command, index) => ({ name: String.fromCodePoint(97 + index), command }));
    return this.server.client.call("startExperiment", { project: this.server.project, attempts, ...options });
  }

  async look(experiment: string): Promise<ShownExperiment> {
    return this.server.client.call("inspectExperiment", { experiment });
  }

  async end(experiment: string, withinMs = 60_000): Promise<ShownExperiment> {
    return eventually(
      () => this.look(experiment),
      ({ state }) => ENDED.includes(state),
      withinMs,
    );
  }

  /** Until an attempt is in a state. */
  async until(experiment: string, name: string, state: string): Promise<ShownExperiment> {
    return eventually(
      () => this.look(experiment),
      (now) => attempt(now, name).state === state,
      30_000,
    );
  }

  async run(lines: readonly string[], options: Partial<InputOf<"startExperiment">> = {}): Promise<ShownExperiment> {
    return this.end((await this.start(lines, options)).id);
  }

  /** What is left of an experiment once what goes has gone. */
  async sandboxes(experiment: string, count: number): Promise<{ id: string; role: string }[]> {
    return eventually(
      async () => {
        const { sandboxes } = await this.server.client.call("listSandboxes", {});
        return sandboxes
          .filter(({ labels }) => labels["experiment"] === experiment)
          .map(({ id, labels }) => ({ id, role: labels["role"] ?? "" }));
      },
      (found) => found.length === count,
      30_000,
    );
  }

  async remove(experiment: string): Promise<void> {
    await this.server.client.call("removeExperiment", { experiment });
  }
}

export function attempt({ attempts }: ShownExperiment, name: string): ShownAttempt {
  const found = attempts.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no attempt ${name}`);
  return found;
}
