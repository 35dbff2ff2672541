/** Siblings of one project that ask each other, as requests of the gateway. Every request is recorded before the sibling sees it. */
import type { Audit } from "../../rules/audit/audit.ts";
import type { AuditEntry } from "../../base/schema/audit.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Store } from "../../base/store/store.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { areSiblings } from "./about.ts";
import type { Answer, Call } from "./call.ts";
import { Coordination, type RequestOptions, type Sibling } from "./coordination.ts";
import type { ReviewRequest } from "../../work/reviews/review-text.ts";
import type { Reviews } from "../../work/reviews/reviews.ts";
import type { RunGateway } from "../../work/agents/run-gateway.ts";
import type { GatewayParts } from "./routes.ts";

export class Conversations {
  readonly #store: Store;
  readonly #audit: Audit;
  readonly #reviews: Pick<Reviews, "offered" | "ask">;
  readonly #runs: RunGateway;
  readonly #coordination = new Coordination();

  constructor({
    parts,
    audit,
    reviews,
    runs,
  }: Pick<GatewayParts, "audit" | "reviews" | "runs"> & { readonly parts: Pick<GatewayParts["parts"], "store"> }) {
    this.#store = parts.store;
    this.#audit = audit;
    this.#reviews = reviews;
    this.#runs = runs;
  }

  forget(sandbox: string): void {
    this.#coordination.forget(sandbox);
  }

  async coordinate({ row, path, input, signal }: Call<"askSibling">): Answer<"askSibling"> {
    const { action, context, conversation, fromSandboxId, timeout } = input;
    if (fromSandboxId !== undefined && fromSandboxId !== row.id && fromSandboxId !== row.name)
      throw new VivError("denied", "fromSandboxId is not the sandbox that asks.", { remedy: "Leave it out: the socket says who asks." });
    if (conversation && (await this.#runs.find(row.id)) === undefined)
      throw new VivError("not_found", "No agent's run is in this sandbox, so it has no conversation to give.", { remedy: "Leave it out." });
    const text = { action, context: context ?? null };
    const { to, serve } = await this.#target(row, path.to, text);
    const details = { to: to.id, ...text, ...(conversation ? { conversation } : {}) };
    try {
      const [message, answer] = await this.#coordination.request(
        row,
        to,
        { ...text, conversation },
        {
          timeoutMs: timeout * 1000,
          signal,
          record: ({ id }) => this.#record(row, { action: "coordinate_sibling", target: to.name, arguments: { message: id, ...details } }),
          ...(serve === undefined ? {} : { serve }),
        },
      );
      return { body: { message: message.id, from: to.id, fromName: to.name, provenance: "sibling", answer } };
    } catch (error) {
      if (error instanceof VivError && (error.code === "coordination_cycle" || error.code === "no_capacity"))
        await this.#record(row, {
          action: "coordinate_sibling",
          target: to.name,
          arguments: details,
          label: "DENIED",
          rule: error.code,
          reason: error.message,
        });
      throw error;
    }
  }

  async messages({ row, input, signal }: Call<"readMessages">): Answer<"readMessages"> {
    const { wait, after } = input;
    return { body: { messages: await this.#coordination.messages(row.id, after, wait * 1000, signal) } };
  }

  async answer({ row, path, input }: Call<"answerMessage">): Answer<"answerMessage"> {
    const [id, { answer }] = [path.message, input];
    const { from } = this.#coordination.asked(row.id, id);
    await this.#record(row, { action: "coordinate_sibling.answer", target: from.name, arguments: { message: id, answer } });
    this.#coordination.answer(row.id, id, answer);
    return { body: { ok: true } };
  }

  /** A sibling that is there, or one that begins to work when it is asked. */
  async #target(row: SandboxRow, name: string, text: ReviewRequest): Promise<{ to: Sibling } & Pick<RequestOptions, "serve">> {
    if (!this.#reviews.offered(row.id).includes(name)) return { to: await this.#sibling(row, name) };
    const to = { id: `${row.id}/${name}`, name, project: row.project };
    return { to, serve: async (signal) => (await this.#reviews.ask(row.id, name, text, signal)).text };
  }

  /** Its own, that of the run before, or one that a sibling gave with a request which waits for this sandbox's answer. */
  async read({ row, input: { of, budget, search } }: Call<"readConversation">): Answer<"readConversation"> {
    const asked = { budget, search };
    if (of === "self" || of === "before") return { body: await this.#runs.conversation(row.id, of, asked) };
    const { from, message } = this.#coordination.asked(row.id, of);
    if (!message.conversation) throw new VivError("not_found", `${from.name} gave no conversation with that message.`);
    await this.#record(row, { action: "read_conversation", target: from.name, arguments: { message: of, search: search ?? null } });
    return { body: await this.#runs.conversation(from.id, "self", asked) };
  }

  /** A sandbox gets the same answer for a sibling that does not exist and for one of another project. */
  async #sibling(row: SandboxRow, reference: string): Promise<SandboxRow> {
    if (reference === "self" || reference === row.id || reference === row.name) return row;
    const found = (await this.#store.sandboxes.get(reference)) ?? (await this.#store.sandboxes.find({ name: reference }));
    if (found === undefined || !areSiblings(row, found))
      throw new VivError("not_found", `There is no sibling ${reference.slice(0, 64)}.`, {
        remedy: "GET /sandbox/self names the siblings.",
      });
    if (found.state !== "running") throw new VivError("not_running", `Sandbox ${found.name} is ${found.state}.`);
    return found;
  }

  #record(row: SandboxRow, entry: Pick<AuditEntry, "action" | "target" | "arguments"> & Partial<AuditEntry>): Promise<unknown> {
    return this.#audit.record({
      actor: { kind: "agent", name: row.name },
      label: "AUTONOMOUS",
      rule: null,
      reason: null,
      sandbox: row.id,
      snapshot: row.currentSnapshot,
      ...entry,
    });
  }
}
