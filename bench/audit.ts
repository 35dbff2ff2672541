/** How many reports of agents a second become durable records, and whether all that were accepted are there after a kill -9. */
import { connect } from "node:net";
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
      const [worked, accepted] = [server.worked(), agents.accepted];
      for (let index = 0; index < (quick ? 3 : ROUNDS); index += 1) samples.push(await agents.report(ROUND_MS));
      const each = (server.worked() - worked) / (agents.accepted - accepted);
      progress("audit_per_s: kill -9");
      const dying = agents.report(ROUND_MS * 10);
      await new Promise((resolve) => setTimeout(resolve, ROUND_MS / 2));
      await server.killAndRestart();
      await dying;
      const lost = await agents.lost();
      if (lost > 0) throw new Error(`${lost} of ${agents.accepted} accepted reports are not in the trail`);
      const raw = series(samples, "per s");
      return {
        audit_per_s: {
          figure: round(raw.median),
          raw: { records: raw },
          more: { server_cpu_ms: round(each), accepted: agents.accepted, lost },
        },
      };
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
    const [began, before] = [performance.now(), this.accepted];
    const goesOn = (): boolean => performance.now() - began < ms;
    await Promise.all(Array.from({ length: AGENTS }, (_, index) => this.#agent(this.#boxes[index % this.#boxes.length] ?? "", goesOn)));
    const seconds = (performance.now() - began) / 1000;
    return (this.accepted - before) / seconds;
  }

  /** One connection of plain HTTP: agents have processors of their own, and what they need besides must not be what is measured. */
  #agent(sandbox: string, goesOn: () => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const connection = connect(this.#server.paths.socket);
    let args = "";
    const next = (): void => {
      args = `npm test -- --shard=${(this.#sent += 1)}`;
      const body = JSON.stringify({ decision: { tool: "bash", args, timestamp: new Date().toISOString() } });
      const head = `POST /sandboxes/${sandbox}/decisions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json`;
      connection.write(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    };
    connection.setEncoding("latin1").on("data", (answer: string) => {
      // An answer is far smaller than what comes in one piece; anything else is no acceptance.
      if (!answer.startsWith("HTTP/1.1 201 ") || !answer.endsWith('{"ok":true}')) {
        reject(new Error(`a report was refused: ${answer}`));
        return void connection.destroy();
      }
      this.#accepted.add(args);
      if (goesOn()) next();
      else connection.end();
    });
    // The server is killed at the end.
    connection.on("error", () => connection.destroy()).on("close", () => resolve());
    next();
    return promise;
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
