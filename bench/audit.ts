/** How many reports of agents a second become durable records, and whether all that were accepted are there after a kill -9. */
import { Client } from "../src/interfaces/client/client.ts";
import { round, series } from "./measure.ts";
import type { Group } from "./rows.ts";
import { BenchServer } from "./server.ts";

/** Agents that report at once, each its next one when the last was accepted. */
const AGENTS = 64;
const SANDBOXES = 4;
const ROUND_MS = 1_000;
const ROUNDS = 15;

export const auditGroup: Group = {
  keys: ["audit_per_s"],
  async measure({ quick, progress }) {
    return BenchServer.with(async (server) => {
      progress("audit_per_s: reports");
      const boxes = await Promise.all(Array.from({ length: SANDBOXES }, () => server.create()));
      const agents = new Agents(
        server,
        boxes.map(({ id }) => id),
      );
      await agents.report(ROUND_MS);
      const samples: number[] = [];
      for (let index = 0; index < (quick ? 3 : ROUNDS); index += 1) samples.push(await agents.report(ROUND_MS));
      progress("audit_per_s: kill -9");
      const dying = agents.report(ROUND_MS * 10);
      await new Promise((resolve) => setTimeout(resolve, ROUND_MS / 2));
      await server.killAndRestart();
      await dying;
      const lost = await agents.lost();
      if (lost > 0) throw new Error(`${lost} of ${agents.accepted} accepted reports are not in the trail`);
      const raw = series(samples, "per s");
      return { audit_per_s: { figure: round(raw.median), raw: { records: raw }, more: { accepted: agents.accepted, lost } } };
    });
  },
};

class Agents {
  readonly #server: BenchServer;
  readonly #boxes: readonly string[];
  readonly #accepted = new Set<string>();
  #sent = 0;

  constructor(server: BenchServer, boxes: readonly string[]) {
    this.#server = server;
    this.#boxes = boxes;
  }

  get accepted(): number {
    return this.#accepted.size;
  }

  /** Reports accepted in a second, over this time or until the server is gone. */
  async report(ms: number): Promise<number> {
    const client = new Client({ socket: this.#server.paths.socket });
    const [began, before] = [performance.now(), this.accepted];
    const agent = async (sandbox: string): Promise<void> => {
      while (performance.now() - began < ms) {
        const args = `npm test -- --shard=${(this.#sent += 1)}`;
        await client.call("reportDecision", { sandbox, decision: { tool: "bash", args, timestamp: new Date().toISOString() } });
        this.#accepted.add(args);
      }
    };
    await Promise.allSettled(Array.from({ length: AGENTS }, (_, index) => agent(this.#boxes[index % this.#boxes.length] ?? "")));
    const seconds = (performance.now() - began) / 1000;
    client.close();
    return (this.accepted - before) / seconds;
  }

  /** Of those that were accepted, how many are not in the trail; the trail itself must be whole. */
  async lost(): Promise<number> {
    const report = await this.#server.call("verifyAudit", {});
    if (!report.whole) throw new Error(report.problem ?? "the trail is not whole");
    const missing = new Set(this.#accepted);
    for (let after = 0; ;) {
      const { records } = await this.#server.call("listAudit", { after, limit: 1000 });
      for (const { target } of records) missing.delete(target);
      after = records.at(-1)?.sequence ?? after;
      if (records.length < 1000) return missing.size;
    }
  }
}
