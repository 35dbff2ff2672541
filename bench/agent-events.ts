/** How fast what an agent tells goes through the server: read, written down, and sent to all who listen. */
import { chmodSync, copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { round, series } from "./measure.ts";
import type { Group } from "./rows.ts";
import { BenchServer } from "./server.ts";

const FAKE = fileURLToPath(new URL("../test/support/agents/fake-claude.mjs", import.meta.url));
const LISTENERS = 10;
const EVENTS = 20_000;
const ROUNDS = 10;

export const agentEventsGroup: Group = {
  keys: ["events_per_s"],
  async measure({ quick, progress }) {
    // No model is asked.
    const config = { models: { anthropic: { url: "http://127.0.0.1:9", secret: "anthropic" } } };
    return BenchServer.with(async (server) => {
      const bin = join(server.project, "node_modules/.bin");
      mkdirSync(bin, { recursive: true });
      copyFileSync(FAKE, join(bin, "claude"));
      chmodSync(join(bin, "claude"), 0o755);
      await server.call("setSecret", { secret: "anthropic", value: "not-used", hosts: ["127.0.0.1:9"], projects: null });
      const path = `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`;
      const samples: number[] = [];
      for (let index = -1; index < (quick ? 2 : ROUNDS); index += 1) {
        progress(`events_per_s: round ${index + 1}`);
        const rate = await perSecond(server, path);
        if (index >= 0) samples.push(rate);
      }
      const raw = series(samples, "per s");
      return { events_per_s: { figure: round(raw.median), raw: { events: raw }, more: { listeners: LISTENERS, events: EVENTS } } };
    }, config);
  },
};

/** From the moment at which the server took the first event until the last listener has the last. */
async function perSecond(server: BenchServer, path: string): Promise<number> {
  const { id, attempts } = await server.call("startExperiment", {
    project: server.project,
    attempts: [{ agent: { task: `many ${EVENTS}` } }],
    env: { PATH: path },
  });
  const run = attempts[0]?.run ?? "";
  const spans = await Promise.all(Array.from({ length: LISTENERS }, () => listen(server, run)));
  const { events } = await server.call("listRunEvents", { run, after: EVENTS, limit: 100 });
  if (!events.some(({ type }) => type === "finished")) throw new Error("the store does not have what the listeners heard");
  await server.call("removeExperiment", { experiment: id });
  const began = Math.min(...spans.map(({ first }) => first));
  const ended = Math.max(...spans.map(({ last }) => last));
  return EVENTS / ((ended - began) / 1000);
}

/** Hears every event once and in order. */
async function listen(server: BenchServer, run: string): Promise<{ first: number; last: number }> {
  let [count, sequence, first, last] = [0, 0, 0, 0];
  for await (const event of server.runEvents(run)) {
    sequence += 1;
    if (event.sequence !== sequence) throw new Error(`event ${event.sequence} came as number ${sequence}`);
    // It also hears of the guardian, who does not like agents that only talk, and says so.
    if (event.type !== "message" || event.from !== "agent" || event.text.startsWith("heard: ")) continue;
    count += 1;
    if (event.text !== `step ${count}`) throw new Error(`the agent's word ${count} came as ${event.text}`);
    if (count === 1) first = Date.parse(event.at);
    if (count === EVENTS) last = Date.now();
  }
  if (count !== EVENTS) throw new Error(`a listener heard ${count} of ${EVENTS} events`);
  return { first, last };
}
