/** More CPU or memory for a running sandbox: at once within the ceiling, else when a person says so. */
import type { Approvals, Question } from "../../rules/approvals/approvals.ts";
import type { Audit } from "../../rules/audit/audit.ts";
import { errorText } from "../../base/host/log.ts";
import { grantedWithoutAsking } from "../../sandbox/start/admission.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import { projectOf } from "../../sandbox/projects/projects.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Approval } from "../../base/schema/approval.ts";
import type { ResourcesInput } from "../../base/schema/gateway.ts";
import type { Limits } from "../../base/schema/sandbox.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Answer, Call } from "./call.ts";

type ResourcesParts = Pick<Parts, "store" | "user" | "state" | "log">;

type Wish = Pick<Limits, "cpus" | "memoryBytes">;

const TARGET = /^([\d.]+) cpus, (\d+) bytes of memory$/;

export class Resources {
  readonly #parts: ResourcesParts;
  readonly #sandboxes: Sandboxes;
  readonly #approvals: Approvals;
  readonly #audit: Audit;
  readonly #watched = new Set<string>();
  readonly #closing = new AbortController();

  constructor(all: { parts: ResourcesParts; sandboxes: Sandboxes; approvals: Approvals; audit: Audit }) {
    this.#parts = all.parts;
    this.#sandboxes = all.sandboxes;
    this.#approvals = all.approvals;
    this.#audit = all.audit;
  }

  async request({ row, input }: Call<"requestResources">): Answer<"requestResources"> {
    const result = await this.#ask(row, input);
    if ("limits" in result) return { body: { granted: true, limits: result.limits } };
    const { id, state, deadline } = result.approval;
    return { waits: { granted: false, approval: id, state, deadline } };
  }

  /** The limits as they are now, or the question that a person has to answer first. */
  async #ask(row: SandboxRow, { cpus, memoryBytes, reason }: ResourcesInput): Promise<{ limits: Limits } | { approval: Approval }> {
    const wish: Wish = { cpus: cpus ?? row.limits.cpus, memoryBytes: memoryBytes ?? row.limits.memoryBytes };
    this.#sandboxes.limitChanges.refuse(row, wish);
    const { config } = await projectOf(this.#parts.store, row, this.#parts.state);
    const most = grantedWithoutAsking(row, config, this.#parts.user);
    if (wish.cpus <= most.cpus && wish.memoryBytes <= most.memoryBytes) return { limits: await this.#grant(row, wish, "ceiling") };
    const question = questionOf(row, wish, reason);
    if (await this.#approvals.use(question)) return { limits: await this.#grant(row, wish, "person") };
    const approval = await this.#approvals.ask(question);
    this.#watch(approval.id);
    return { approval };
  }

  /** Goes on with questions that were put before the server ended. */
  async resume(): Promise<void> {
    for (const state of ["waiting", "approved"] as const)
      for (const { id, kind } of await this.#parts.store.approvals.list({ state })) if (kind === "resources") this.#watch(id);
  }

  close(): void {
    this.#closing.abort();
  }

  /** Carries out what a person grants, also when the sandbox does not ask again. */
  #watch(approval: string): void {
    if (this.#watched.has(approval)) return;
    this.#watched.add(approval);
    this.#approvals
      .wait(approval, this.#closing.signal)
      .then((answered) => (answered.state === "approved" ? this.#carryOut(answered) : undefined))
      .catch((error: unknown) => this.#parts.log.info("granted resources were not given", { approval, error: errorText(error) }))
      .finally(() => this.#watched.delete(approval));
  }

  async #carryOut({ sandbox, target }: Approval): Promise<void> {
    const [, cpus, memoryBytes] = TARGET.exec(target) ?? [];
    if (sandbox === null || cpus === undefined) return;
    const row = await this.#sandboxes.find(sandbox);
    const wish: Wish = { cpus: Number(cpus), memoryBytes: Number(memoryBytes) };
    if (await this.#approvals.use(questionOf(row, wish, undefined))) await this.#grant(row, wish, "person");
  }

  async #grant(row: SandboxRow, wish: Wish, by: "ceiling" | "person"): Promise<Limits> {
    await this.#audit.record({
      actor: { kind: "agent", name: row.name },
      action: "request_resources",
      target: targetOf(wish),
      arguments: { before: { cpus: row.limits.cpus, memoryBytes: row.limits.memoryBytes } },
      label: by === "ceiling" ? "AUTONOMOUS (whitelisted)" : "APPROVED",
      rule: by === "ceiling" ? "ceiling" : null,
      reason: null,
      sandbox: row.id,
      snapshot: row.currentSnapshot,
    });
    return (await this.#sandboxes.grant(row, wish)).limits;
  }
}

function targetOf({ cpus, memoryBytes }: Wish): string {
  return `${cpus} cpus, ${memoryBytes} bytes of memory`;
}

function questionOf(row: SandboxRow, wish: Wish, reason: string | undefined): Question {
  return {
    sandbox: row.id,
    sandboxName: row.name,
    project: row.project,
    kind: "resources",
    target: targetOf(wish),
    rule: "above the ceiling",
    reason: reason === undefined ? "The sandbox asks for more than its ceiling." : `The sandbox says: ${reason}`,
    always: null,
  };
}
