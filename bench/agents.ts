/** What the sandbox, the policy and the server add to a real Claude Code, whose model answers at once from a script. */
import { cpSync, mkdtempSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { RunEvent } from "../src/base/schema/run.ts";
import { ScriptedModel, type Step } from "../test/support/scripted-model.ts";
import { CLAUDE_ALONE, CLAUDE_ALONE_FLAGS } from "./claude-alone.ts";
import { installs } from "./installed-agents.ts";
import { pairCount, rested, round, series } from "./measure.ts";
import { INSTALL } from "./peers.ts";
import { publish } from "./published.ts";
import type { Absent, Group, Key, Measured, Settings } from "./rows.ts";
import { BenchServer } from "./server.ts";
import { Spawner } from "./spawner.ts";

const MODEL = "scripted";
const LOOPING = "looping";
const TASK = "Do it.";
/** Of each tool call in the loop. */
const TOOL_SECONDS = 0.2;
/** Removals of the task before must not meet the next sample. */
const QUIET_MS = 300;
const bash = (command: string): Step => ({ calls: [{ name: "Bash", input: { command, description: "Does it" } }] });

/**
 * Milliseconds of one run of the agent. `wholeMs` is the life of its process on both sides: from the spawn of the same program, without
 * a shell around it, to its exit, by the clock of the process that spawned it. `firstMs` begins with what was typed.
 */
interface Sampled {
  readonly wholeMs: number;
  readonly firstMs: number;
}

export const agentGroup: Group = {
  keys: ["agent_overhead", "task_start_ms", "inject_ms"],
  async measure(settings) {
    const program = installs.find("claude")?.program;
    if (program === undefined) return absent({ reason: `Claude Code is not installed; ${INSTALL}` });
    const model = await ScriptedModel.open({ [MODEL]: [bash("echo one > one.txt"), bash("cat one.txt"), { text: "Done." }] });
    try {
      const config = { models: { anthropic: { url: model.url, secret: "anthropic" } } };
      return await BenchServer.with((server) => new AgentBench(server, model, program, settings).measure(), config);
    } finally {
      model.close();
    }
  },
};

function absent(why: Absent): Partial<Record<Key, Absent>> {
  return Object.fromEntries(agentGroup.keys.map((key) => [key, why]));
}

class AgentBench {
  readonly #server: BenchServer;
  readonly #model: ScriptedModel;
  readonly #program: string;
  readonly #settings: Settings;

  constructor(server: BenchServer, model: ScriptedModel, program: string, settings: Settings) {
    this.#server = server;
    this.#model = model;
    this.#program = program;
    this.#settings = settings;
  }

  async measure(): Promise<Partial<Record<Key, Measured>>> {
    const { wanted, progress } = this.#settings;
    const hosts = [new URL(this.#model.url).host];
    await this.#server.call("setSecret", { secret: "anthropic", value: "not-used", hosts, projects: null });
    const outcomes: Partial<Record<Key, Measured>> = {};
    if (wanted.has("agent_overhead") || wanted.has("task_start_ms")) {
      progress("agent_overhead, task_start_ms");
      Object.assign(outcomes, await this.#runs());
    }
    if (wanted.has("inject_ms")) {
      progress("inject_ms");
      outcomes.inject_ms = await this.#injections();
    }
    return outcomes;
  }

  get #path(): string {
    return `${dirname(this.#program)}:${process.env["PATH"] ?? ""}`;
  }

  /** Both rows come from the same pairs: a task in a sandbox and the agent alone. */
  async #runs(): Promise<Partial<Record<Key, Measured>>> {
    const viv = await publish(join(this.#server.place, "package"));
    const spawner = new Spawner();
    const inside: Sampled[] = [];
    const outside: Sampled[] = [];
    const take = async (sides: Sampled[], sample: () => Promise<Sampled>, isKept: boolean): Promise<void> => {
      await rested(async () => 0, QUIET_MS);
      const sampled = await sample();
      if (isKept) sides.push(sampled);
    };
    try {
      for (let index = -1; index < pairCount(this.#settings.quick); index += 1) {
        const sides = [
          [inside, () => this.#task(viv, spawner)],
          [outside, () => this.#alone(spawner)],
        ] as const;
        for (const [samples, sample] of index % 2 === 0 ? sides : sides.toReversed()) await take(samples, sample, index >= 0);
      }
    } finally {
      await spawner.close();
    }
    const whole = { inside: series(inside.map(({ wholeMs }) => wholeMs)), outside: series(outside.map(({ wholeMs }) => wholeMs)) };
    // Of two samples that were taken one after the other: what else the machine did meets both.
    const ratios = series(
      inside.map(({ wholeMs }, index) => wholeMs / (outside[index]?.wholeMs ?? Number.NaN)),
      "x",
    );
    const first = { "viv task": series(inside.map(({ firstMs }) => firstMs)), alone: series(outside.map(({ firstMs }) => firstMs)) };
    return {
      agent_overhead: { figure: round(whole.inside.median / whole.outside.median), raw: whole, more: { median_of_pairs: ratios.median } },
      task_start_ms: { figure: round(first["viv task"].median - first.alone.median), raw: first },
    };
  }

  /** Until the model is asked for the first time from now on. */
  async #firstRequest(): Promise<number> {
    const before = this.#model.received.length;
    const began = performance.now();
    await this.#model.waitFor((request) => this.#model.received.indexOf(request) >= before && request.turn === 0);
    return performance.now() - began;
  }

  /** As a user types it; what it leaves is removed outside the clock. */
  async #task(viv: string, spawner: Spawner): Promise<Sampled> {
    const asked = this.#firstRequest();
    const words = [viv, "task", TASK, "--model", MODEL];
    const [firstMs] = await Promise.all([
      asked,
      spawner.run(words, { cwd: this.#server.project, env: { ...this.#server.env, PATH: this.#path } }),
    ]);
    const { experiments } = await this.#server.call("listExperiments", { project: this.#server.project });
    const [newest] = experiments;
    const { attempts } = await this.#server.call("inspectExperiment", { experiment: newest?.id ?? "" });
    const wholeMs = attempts[0]?.wallMs;
    if (wholeMs == null || attempts[0]?.diff?.files !== 1) throw new Error(`the task did not do its work: ${JSON.stringify(attempts)}`);
    await this.#server.call("removeExperiment", { experiment: newest?.id ?? "" });
    return { wholeMs, firstMs };
  }

  /** The same program in a copy of the project, given its task in the same way. */
  async #alone(spawner: Spawner): Promise<Sampled> {
    const place = mkdtempSync(join(this.#server.place, "alone-"));
    const [project, input] = [join(place, "project"), join(place, "input")];
    cpSync(this.#server.project, project, { recursive: true });
    writeFileSync(input, `${JSON.stringify({ type: "user", message: { role: "user", content: [{ type: "text", text: TASK }] } })}\n`);
    const env = { ...CLAUDE_ALONE, ANTHROPIC_BASE_URL: this.#model.url, CLAUDE_CONFIG_DIR: place, CLAUDE_CODE_TMPDIR: place };
    const asked = this.#firstRequest();
    const words = [this.#program, ...CLAUDE_ALONE_FLAGS, "--model", MODEL];
    const [firstMs, wholeMs] = await Promise.all([asked, spawner.run(words, { cwd: project, env, input })]);
    return { wholeMs, firstMs };
  }

  /** Said at moments that have nothing to do with the loop's own. */
  async #injections(): Promise<Measured> {
    const count = pairCount(this.#settings.quick);
    let isOver = false;
    this.#model.script(LOOPING, ({ turn }) => (isOver ? { text: "Done." } : bash(`echo ${turn} >> notes.txt; sleep ${TOOL_SECONDS}`)));
    const { attempts } = await this.#server.call("startExperiment", {
      project: this.#server.project,
      attempts: [{ agent: { task: TASK, model: LOOPING } }],
      env: { PATH: this.#path },
    });
    const run = attempts[0]?.run ?? "";
    const heard = new HeardMessages(this.#server.runEvents(run));
    await this.#model.waitFor((request) => request.model === LOOPING && request.turn > 0);
    const samples: number[] = [];
    for (let index = 0; index < count; index += 1) {
      await delay(100 + ((index * 137) % 400));
      const began = performance.now();
      const { id } = await this.#server.call("sayToRun", { run, text: `Note number ${index}.` });
      samples.push((await heard.at(id)) - began);
    }
    isOver = true;
    await heard.ended;
    const { messages } = await this.#server.call("listRunMessages", { run });
    const delivered = messages.filter(({ state }) => state === "delivered").length;
    if (delivered < count + 1) throw new Error(`only ${delivered} of ${count + 1} messages were delivered`);
    const raw = series(samples);
    return { figure: raw.median, raw: { "until delivered": raw } };
  }
}

/** The moments at which messages were told to be with the agent. */
class HeardMessages {
  readonly #at = new Map<string, PromiseWithResolvers<number>>();
  readonly ended: Promise<void>;

  constructor(events: AsyncIterable<RunEvent>) {
    this.ended = this.#listen(events);
  }

  at(message: string): Promise<number> {
    return Promise.race([
      this.#slot(message).promise,
      this.ended.then(() => Promise.reject(new Error("the run ended before it heard it"))),
    ]);
  }

  #slot(message: string): PromiseWithResolvers<number> {
    const slot = this.#at.get(message) ?? Promise.withResolvers<number>();
    this.#at.set(message, slot);
    return slot;
  }

  async #listen(events: AsyncIterable<RunEvent>): Promise<void> {
    for await (const event of events)
      if (event.type === "message" && event.message !== null) this.#slot(event.message).resolve(performance.now());
  }
}
