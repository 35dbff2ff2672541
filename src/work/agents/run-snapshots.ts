/** Snapshots of a run: before what may destroy work, before each turn where that is asked for, and before the guardian steps in. */
import { errorText } from "../../base/host/log.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { PolicyAction } from "../../base/schema/policy.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { AgentParts, Before } from "./agent-process.ts";
import { riskOf } from "../guardian/risk.ts";
import type { RunJournal } from "./run-journal.ts";

export class RunSnapshots implements Before {
  readonly #all: AgentParts;
  readonly #journal: RunJournal;
  readonly #sandbox: () => SandboxRow;

  constructor(all: AgentParts, journal: RunJournal, sandbox: () => SandboxRow) {
    this.#all = all;
    this.#journal = journal;
    this.#sandbox = sandbox;
  }

  /** Before an action that the policy allows. One that fails does not hold the agent up: the policy has decided. */
  async action(action: PolicyAction): Promise<void> {
    const command = action.kind === "tool" && action.tool === "bash" && action.argument !== undefined ? action.argument : undefined;
    const risk = riskOf(command === undefined ? action : { kind: "command", command });
    if (risk !== null) await this.#try(risk);
  }

  /** Only where that was asked for. */
  async turn(): Promise<void> {
    if (this.#journal.row.snapshotTurns === true) await this.#try("Before a turn of the agent.");
  }

  async #try(reason: string): Promise<void> {
    await this.take(reason).catch((error: unknown) =>
      this.#all.parts.log.warn("no snapshot of a run", { run: this.#journal.row.id, reason, error: errorText(error) }),
    );
  }

  /** Of now; the oldest goes where there are many. */
  async take(reason: string): Promise<string> {
    const sandbox = this.#sandbox();
    const { id, createdAt } = await this.#all.sandboxes.snapshot(sandbox.id, undefined);
    const all = [...(this.#journal.row.snapshots ?? []), { id, at: createdAt, reason }];
    const [gone] = all.length > LIMITS.runSnapshots ? all : [];
    this.#journal.change({ snapshots: gone === undefined ? all : all.slice(1) });
    await this.#journal.written();
    if (gone !== undefined) await this.#all.sandboxes.removeSnapshot(sandbox.id, gone.id).catch(() => undefined);
    return id;
  }

  /** The newest one, or the newest that is older than an ISO time; none that was taken for this reason. */
  newest(before?: string, not?: string): string | undefined {
    return (this.#journal.row.snapshots ?? []).findLast(({ at, reason }) => (before === undefined || at < before) && reason !== not)?.id;
  }
}
