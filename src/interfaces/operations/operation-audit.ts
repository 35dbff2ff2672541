/** Puts what people do into the audit trail, by the table in recorded.ts, so that no handler has to think of it. */
import { isSandboxId } from "../../base/schema/ids.ts";
import type { Audit } from "../../rules/audit/audit.ts";
import type { DeferredEntry } from "../../rules/audit/deferred-entries.ts";
import { OWNER, type AuditEntry } from "../../base/schema/audit.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Engine, Handlers, Streams } from "./operations.ts";
import {
  RECORDED_OPERATIONS,
  RECORDED_STREAMS,
  type RecordedBefore,
  type RecordedAfter,
  type Rule,
  type AuditedAction,
} from "./recorded.ts";

type Subject = Pick<SandboxRow, "id" | "name" | "currentSnapshot">;
type Work<Input extends readonly unknown[], Output> = (...input: Input) => Promise<Output>;

const NO_SANDBOX = { id: null, name: "", currentSnapshot: null } as const;

export class OperationAudit {
  readonly #audit: Audit;
  readonly #find: (reference: string) => Promise<Subject>;

  constructor(audit: Audit, find: (reference: string) => Promise<Subject>) {
    this.#audit = audit;
    this.#find = find;
  }

  engine({ operations, streams }: Engine): Engine {
    return {
      operations: this.#all(operations, RECORDED_OPERATIONS, ([input]) => (input as { sandbox?: string }).sandbox) as Handlers,
      streams: this.#all(streams, RECORDED_STREAMS, ([sandbox]) => sandbox as string) as unknown as Streams,
    };
  }

  #all(works: object, rules: object, reference: (input: readonly unknown[]) => string | undefined): object {
    const table = rules as Readonly<Record<string, Rule<readonly unknown[], unknown> | undefined>>;
    const wrapped = Object.entries(works as Record<string, Work<readonly unknown[], unknown>>).map(([name, work]) => {
      const rule = table[name];
      if (rule === undefined) throw new VivError("internal", `The table of recorded operations has no row for ${name}.`);
      return [name, this.#wrap(rule, work, reference)];
    });
    return Object.fromEntries(wrapped) as object;
  }

  #wrap<Input extends readonly unknown[], Output>(
    rule: Rule<Input, Output>,
    work: Work<Input, Output>,
    reference: (input: Input) => string | undefined,
  ): Work<Input, Output> {
    if ("made" in rule) return (...input) => this.#make(rule, work, input);
    if ("act" in rule) return (...input) => this.#act(rule, work, input, reference(input));
    return work;
  }

  async #act<Input extends readonly unknown[], Output>(
    { act, widens, often }: RecordedBefore<Input>,
    work: Work<Input, Output>,
    input: Input,
    reference: string | undefined,
  ): Promise<Output> {
    const find = this.#subject(reference, often === true);
    const entry = async (): Promise<AuditEntry | undefined> => {
      const found = await find();
      const acted = found && act(...input);
      return acted && entryOf(acted, found);
    };
    if (often === true) this.#audit.noteLater(entry, "soon");
    else await this.#before(entry, widens?.(...input) ?? false);
    return this.#watched(work, input, entry);
  }

  /** What it is about; undefined where there is no such sandbox: the work says so, and nothing was done. */
  #subject(reference: string | undefined, later: boolean): () => Promise<Subject | typeof NO_SANDBOX | undefined> {
    if (reference === undefined) return async () => NO_SANDBOX;
    // An id is never used twice, so the sandbox can be looked up later.
    if (later && isSandboxId(reference))
      return () => this.#find(reference).catch(() => ({ id: reference, name: reference, currentSnapshot: null }));
    // Before the work, which may be its removal.
    const found = this.#find(reference).catch(() => undefined);
    return () => found;
  }

  async #make<Input extends readonly unknown[], Output>(
    { made, before, widens }: RecordedAfter<Input, Output>,
    work: Work<Input, Output>,
    input: Input,
  ): Promise<Output> {
    const first = before?.(...input);
    const entry = async (): Promise<AuditEntry | undefined> => first && entryOf(first, NO_SANDBOX);
    // Cut short it leaves nothing, so that it need not wait.
    if (widens?.(...input) === true) await this.#before(entry, true);
    else if (first !== undefined) this.#audit.noteLater(entry, "at once");
    const output = await this.#watched(work, input, entry);
    // Once the caller has its answer, the record is in the trail, also if the server is killed.
    await Promise.all(made(output, ...input).map((done) => this.#audit.noteFirst(entryOf(done, NO_SANDBOX))));
    return output;
  }

  /** An operation that widens rights waits until its record is durable. Any other waits until a kill of the server would not lose the record, and is done even if the record can't be written. */
  async #before(entry: DeferredEntry, widens: boolean): Promise<void> {
    const written = await entry();
    if (written === undefined) return;
    if (widens) await this.#audit.record(written);
    else await this.#audit.noteFirst(written);
  }

  /** If the recorded operation fails, a second record says why. */
  async #watched<Input extends readonly unknown[], Output>(work: Work<Input, Output>, input: Input, entry: DeferredEntry): Promise<Output> {
    try {
      return await work(...input);
    } catch (error) {
      const { code, message } = VivError.from(error);
      this.#audit.noteLater(async () => {
        const written = await entry();
        return written && { ...written, arguments: { failed: code }, reason: `It failed: ${message}` };
      }, "at once");
      throw error;
    }
  }
}

function entryOf({ action, target, details = {}, sandbox }: AuditedAction, subject: Subject | typeof NO_SANDBOX): AuditEntry {
  const given = Object.entries(details).filter((pair): pair is [string, AuditEntry["arguments"]] => pair[1] !== undefined);
  return {
    actor: OWNER,
    action,
    target: target ?? subject.name,
    arguments: Object.fromEntries(given),
    label: "RECORDED",
    rule: null,
    reason: null,
    sandbox: sandbox ?? subject.id,
    snapshot: subject.currentSnapshot,
  };
}
