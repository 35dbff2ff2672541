/** A server with one real agent and the scripted model behind the gateway. */
import { dirname } from "node:path";
import type { InputOf } from "../../../src/base/schema/contracts.ts";
import type { Run, RunEvent } from "../../../src/base/schema/run.ts";
import { ScriptedModel, type ModelRequest, type Script } from "../scripted-model.ts";
import { eventually, TestServer } from "../server.ts";
import { viv } from "../viv.ts";
import { RunLab } from "./run-lab.ts";

const KEY = "the-real-key";
const PATIENCE_MS = 60_000;
const MODEL = "demo";

export class RealRunLab extends RunLab {
  readonly model: ScriptedModel;
  readonly #agent: string;
  readonly #path: string;
  readonly #named: { readonly model?: string };
  /** Requests of runs before the last. */
  #earlier = 0;

  private constructor(server: TestServer, model: ScriptedModel, agent: string, program: string, takesModel: boolean) {
    super(server, PATIENCE_MS);
    this.model = model;
    this.#agent = agent;
    this.#named = takesModel ? { model: MODEL } : {};
    this.#path = `${dirname(program)}:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`;
  }

  /** `agents` are entries of the config, `more` is the rest of it. */
  static async with(agent: string, program: string, agents: object = {}, more: object = {}): Promise<RealRunLab> {
    const model = await ScriptedModel.open();
    const server = await TestServer.start({
      config: {
        models: {
          anthropic: { url: model.url, secret: "key" },
          openai: { url: `${model.url}/v1`, secret: "key" },
          gemini: { url: model.url, secret: "key" },
        },
        prices: { [MODEL]: { input: 1, output: 1 } },
        agents,
        ...more,
      },
    });
    const kept = viv(server, ["secret", "set", "key", "--host", new URL(model.url).host, "--all-projects"], { input: KEY });
    if (kept.code !== 0) throw new Error(kept.err);
    // One of the config has its model in its own configuration, unless its entry says where it goes.
    const takesModel = !(agent in agents) || JSON.stringify(agents).includes("{model}");
    return new RealRunLab(server, model, agent, program, takesModel);
  }

  /** Gives the agent a task, and the model what it will say. */
  async play(script: Script, more: Partial<InputOf<"startExperiment">> & { agent?: object } = {}): Promise<Run> {
    this.model.script(MODEL, script);
    this.#earlier = this.model.received.length;
    const { agent, ...input } = more;
    return this.begin(["Do it."], {
      agent: { agent: this.#agent, ...this.#named, guardian: "off", ...agent },
      env: { PATH: this.#path },
      pick: "none",
      ...input,
    });
  }

  /** What the model was asked for the run that was begun last, without what the agent asks beside its work. */
  get requests(): readonly ModelRequest[] {
    return this.model.received.slice(this.#earlier).filter(({ tools }) => tools.length > 0);
  }

  /** Waits until a command of the agent has made this file in the project; answers with the sandbox. */
  async untilMade(run: string, file: string): Promise<string> {
    const { sandbox } = await this.until(run, (now) => now.sandbox !== null && (now.startedAt !== null || now.endedAt !== null));
    const look = async (): Promise<string> => {
      const { state, reason } = await this.server.client.call("inspectRun", { run });
      if (state === "completed" || state === "failed") throw new Error(`the run ended early: ${reason}`);
      return (await this.server.sh(sandbox ?? "", `test -e ${file} && echo made`)).stdout;
    };
    await eventually(look, (said) => said === "made\n", PATIENCE_MS);
    return sandbox ?? "";
  }

  /** kill -9 of the agent, and of all that it started: its environment names its folder. */
  async crash(sandbox: string): Promise<void> {
    // All of them at once: an agent that sees its command end would go on.
    const each = `all=; for p in /proc/[0-9]*; do if tr '\\0' '\\n' < $p/environ | grep -q vivarium-agents; then all="$all \${p#/proc/}"; fi; done; kill -9 $all`;
    await this.server.sh(sandbox, `(${each}) 2>/dev/null`);
  }

  async list<Type extends RunEvent["type"]>(run: string, type: Type): Promise<Extract<RunEvent, { type: Type }>[]> {
    return (await this.events(run)).filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
  }

  override async remove(): Promise<void> {
    this.model.close();
    await super.remove();
  }
}
