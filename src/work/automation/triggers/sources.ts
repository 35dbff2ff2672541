/** The triggers of all automations: each waits as long as its automation is active. */
import type { SealingKey } from "../../../rules/secrets/sealing-key.ts";
import { KeyedLocks } from "../../../base/host/locks.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { AutomationRow, FiringRow } from "../../../base/store/rows.ts";
import { CronLine, requireCronLine } from "../cron-line.ts";
import { openProject } from "../../../sandbox/projects/projects.ts";
import { environmentOf } from "../experiment-input.ts";
import type { Sighting } from "../firing-record.ts";
import type { AutomationParts } from "../parts.ts";
import { SelfCaused, type Causes } from "../self-caused.ts";
import { CheckTrigger } from "./check.ts";
import { CommitTrigger } from "./commit.ts";
import { FilePatterns } from "./file-patterns.ts";
import { FilesTrigger } from "./files.ts";
import { LogTrigger } from "./log.ts";
import { newHookSecret, WebhookTrigger, type HookCall } from "./webhook.ts";
import { ScheduleTrigger } from "./schedule.ts";
import type { Cursor, Saw, TriggerSource } from "./trigger.ts";

const SECRET_REMEDY = "Make one with `viv automation secret NAME --renew`.";

export interface SourceParts extends AutomationParts {
  /** What secrets of webhooks are sealed with. */
  readonly key: SealingKey;
}

type Take = (automation: string, sightings: readonly Sighting[], cursor?: Cursor) => Promise<FiringRow | undefined>;

interface Armed {
  readonly source: TriggerSource;
  /** What it was made from; another spec takes another source. */
  readonly spec: string;
}

export class Sources {
  readonly #all: SourceParts;
  readonly #take: Take;
  readonly #own: SelfCaused;
  readonly #armed = new Map<string, Armed>();
  readonly #troubles = new Map<string, string>();
  readonly #locks = new KeyedLocks();

  constructor(all: SourceParts, take: Take) {
    this.#all = all;
    this.#take = take;
    this.#own = new SelfCaused(all.parts.store, () => all.clock.now());
  }

  /** Throws for a trigger that can't be. */
  check(row: AutomationRow): void {
    const { when } = row.spec;
    if (when?.on === "schedule") requireCronLine(when.cron, when.timezone);
  }

  /** With what its trigger needs. */
  sealed(row: AutomationRow): AutomationRow {
    return row.kind === "webhook" ? { ...row, sealed: this.#all.key.seal(newHookSecret(), row.id) } : row;
  }

  /** What calls of its webhook are signed with. */
  secretOf(row: AutomationRow): string | null {
    return row.sealed === undefined ? null : this.#all.key.open(row.sealed, row.id);
  }

  /** The firing that a call of a webhook is part of. */
  async call(id: string, call: HookCall): Promise<string> {
    const source = this.#armed.get(id)?.source;
    // A caller that has no secret does not learn which automations there are.
    if (!(source instanceof WebhookTrigger))
      throw new VivError("unauthorized", "The call of the webhook is refused: its signature is not right.");
    return source.call(call);
  }

  /** Waits, or ends waiting, as the row says now. */
  async arm(id: string): Promise<void> {
    await this.#locks.run(id, async () => {
      const row = await this.#all.parts.store.automations.get(id);
      const spec = row?.state === "active" ? JSON.stringify([row.spec.when ?? null, row.sealed]) : undefined;
      const before = this.#armed.get(id);
      if (before?.spec === spec) return;
      this.#armed.delete(id);
      this.#troubles.delete(id);
      await before?.source.stop();
      const source = row === undefined || spec === undefined ? undefined : this.#make(row);
      if (source === undefined || spec === undefined) return;
      this.#armed.set(id, { source, spec });
      try {
        await source.start();
      } catch (error) {
        this.#armed.delete(id);
        await source.stop();
        throw error;
      }
    });
  }

  async disarm(id: string): Promise<void> {
    await this.#locks.run(id, async () => {
      const armed = this.#armed.get(id);
      this.#armed.delete(id);
      await armed?.source.stop();
    });
  }

  #make(row: AutomationRow): TriggerSource | undefined {
    const { when } = row.spec;
    const { clock, parts } = this.#all;
    const saw: Saw = (sightings, cursor) => this.#take(row.id, sightings, cursor);
    const trouble = (reason: string | null): void => {
      if (reason === null) this.#troubles.delete(row.id);
      else this.#troubles.set(row.id, reason);
    };
    switch (when?.on) {
      case "files": {
        const causesOf = (paths: readonly string[]): Promise<Causes> => this.#own.ofFiles(row.project, paths);
        const patterns = new FilePatterns(when.paths);
        return new FilesTrigger({ project: row.project, patterns, clock, log: parts.log, saw, trouble, causesOf }, row.cursor);
      }
      case "schedule":
        return new ScheduleTrigger(new CronLine(when.cron, when.timezone), clock, row.cursor, saw);
      case "webhook": {
        const secret = this.secretOf(row);
        if (secret === null) throw new VivError("secret_unreadable", "The webhook has no secret.", { remedy: SECRET_REMEDY });
        return new WebhookTrigger(secret, clock, (sightings) => this.#take(row.id, sightings));
      }
      case "commit": {
        const { branch, remote, every = remote === undefined ? LIMITS.scanEveryMs : LIMITS.remotePollMs } = when;
        const causesOf = (commit: string): Promise<Causes> => this.#own.ofCommit(row.project, commit);
        return new CommitTrigger(
          { project: row.project, branch, remote, everyMs: every, env: this.#all.env, clock, saw, trouble, causesOf },
          row.cursor,
        );
      }
      case "check": {
        const { command, every = LIMITS.checkPollMs } = when;
        const { timeout: timeoutMs } = row.spec;
        const setup = async (): Promise<string | undefined> =>
          row.spec.setup ?? (await openProject(parts.store, row.project, parts.state)).config.setup;
        const env = environmentOf(row, this.#all.env);
        const { verification } = this.#all;
        return new CheckTrigger(
          { project: row.project, command, setup, env, timeoutMs, everyMs: every, verification, clock, saw, trouble },
          row.cursor,
        );
      }
      case "log":
        return new LogTrigger(
          { file: when.file, line: when.line, clock, saw, trouble, causesOf: () => this.#own.ofLog(row.project, when.file) },
          row.cursor,
        );
      default:
        return undefined;
    }
  }

  async look(row: AutomationRow): Promise<{ wouldFire: boolean; seen: string }> {
    const armed = this.#armed.get(row.id)?.source;
    const source = armed ?? this.#make(row);
    try {
      return (await source?.look()) ?? { wouldFire: false, seen: "It waits for no trigger: a person starts it." };
    } finally {
      // A look may have begun to watch.
      if (armed === undefined) await source?.stop();
    }
  }

  nextAt(id: string): string | null {
    return this.#armed.get(id)?.source.nextAt?.()?.toISOString() ?? null;
  }

  /** Why it can't wait for now, where something is in its way that may pass. */
  troubleOf(id: string): string | null {
    return this.#troubles.get(id) ?? null;
  }

  async close(): Promise<void> {
    const all = [...this.#armed.values()];
    this.#armed.clear();
    await Promise.all(all.map(({ source }) => source.stop()));
  }
}
