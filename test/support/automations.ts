/** Automations through the API, waited for. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { InputOf, OutputOf } from "../../src/base/schema/contracts.ts";
import { eventually, type TestServer } from "./server.ts";

export type ShownFiring = OutputOf<"inspectFiring">;
type Spec = InputOf<"addAutomation">["spec"];

/** What no test of automations wants to wait for. */
export const ACTING = { spares: false, automations: { authority: "act-and-log" } } as const;

export class AutomationLab {
  readonly server: TestServer;

  constructor(server: TestServer) {
    this.server = server;
  }

  async add(name: string, spec: Spec, project = this.server.project): Promise<OutputOf<"addAutomation">> {
    return this.server.client.call("addAutomation", { project, name, spec: { batch: 0, ...spec } });
  }

  async run(automation: string): Promise<ShownFiring> {
    return this.end((await this.server.client.call("runAutomation", { automation })).id);
  }

  async look(firing: string): Promise<ShownFiring> {
    return this.server.client.call("inspectFiring", { firing });
  }

  /** Until it has ended, or waits for a person. */
  async end(firing: string, withinMs = 50_000): Promise<ShownFiring> {
    return eventually(
      () => this.look(firing),
      ({ endedAt, state }) => endedAt !== null || state === "waiting",
      withinMs,
    );
  }

  /** The sandbox in which its first attempt runs, once it does. */
  async attempt(firing: string): Promise<string> {
    const found = await eventually(
      async () => {
        const { experiment } = await this.look(firing);
        if (experiment === null) return null;
        const { attempts } = await this.server.client.call("inspectExperiment", { experiment }).catch(() => ({ attempts: [] }));
        return attempts[0]?.state === "running" ? attempts[0].sandbox : null;
      },
      (sandbox) => sandbox !== null,
      30_000,
    );
    return found ?? "";
  }

  async firings(automation?: string): Promise<ShownFiring[]> {
    return (await this.server.client.call("listFirings", { limit: 1000, ...(automation === undefined ? {} : { automation }) })).firings;
  }

  /** The firings of an automation once there are so many, and all of them have ended. */
  async ended(automation: string, count: number, withinMs = 50_000): Promise<ShownFiring[]> {
    return eventually(
      () => this.firings(automation),
      (all) => all.length >= count && all.every(({ endedAt, state }) => endedAt !== null || state === "waiting"),
      withinMs,
    );
  }

  async state(automation: string): Promise<OutputOf<"inspectAutomation">> {
    return this.server.client.call("inspectAutomation", { automation });
  }

  read(name: string, project = this.server.project): string {
    return readFileSync(join(project, name), "utf8");
  }
}

/** Hashes of all files of a project, by path, without its repository. */
export function hashesOf(project: string): Record<string, string> {
  const files = readdirSync(project, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => join(entry.parentPath, entry.name)).filter((path) => !path.includes("/.git/"));
  return Object.fromEntries(
    paths.toSorted().map((path) => [path.slice(project.length + 1), createHash("sha256").update(readFileSync(path)).digest("hex")]),
  );
}
