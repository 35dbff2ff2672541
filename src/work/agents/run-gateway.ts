/**
 * The port between what a sandbox asks from inside and the run in it: an agent that no adapter understands tells of itself and fetches
 * its messages, and one that rolls its sandbox back goes on afterwards. Each method throws `not_found` where no run is in the sandbox.
 */
import type { ContextEntry, ConversationHit } from "../../base/schema/conversation.ts";
import type { RunStatusInput } from "../../base/schema/gateway.ts";
import type { Run, RunMessage, ToldEvent } from "../../base/schema/run.ts";
import type { ModelAnswer } from "../../rules/models/retry-after.ts";

/** A conversation as it is read from inside: a view, or what of it fits a search. */
export interface ReadConversation {
  readonly run: string;
  readonly provenance: "record";
  readonly records: number;
  readonly entries: ContextEntry[];
  readonly hits: ConversationHit[];
}

export interface RunGateway {
  /** The run that is in this sandbox and has not ended. */
  find(sandbox: string): Promise<Run | undefined>;
  /** Resolves once it is written down. `done` and `failed` end the run with this text. */
  setStatus(sandbox: string, status: RunStatusInput): Promise<Run>;
  /** Resolves with the run once they are written down. None at all counts as a heartbeat, as every event does. */
  events(sandbox: string, events: readonly ToldEvent[]): Promise<Run>;
  /**
   * Messages that wait for the agent, the urgent first. They are `sent` from now on, and told once: who fetches them says what became
   * of each. Waits for the first one as long as this, or until the signal.
   */
  messages(sandbox: string, waitMs: number, signal: AbortSignal): Promise<RunMessage[]>;
  /** A message that was fetched is with the agent, or will never be. `not_found` where none such waits. */
  settle(sandbox: string, message: string, delivered: boolean, reason: string | null): Promise<void>;
  /** The conversation of the run in the sandbox, or of the one that it took over. `not_found` where it took over none. */
  conversation(
    sandbox: string,
    of: "self" | "before",
    asked: { readonly budget: number; readonly search: string | undefined },
  ): Promise<ReadConversation>;
  /**
   * Its model API answered it. A refusal for a while is told as a wait of the run, and the next good answer as its end; a run that is
   * not to wait ends. Without a run nothing happens.
   */
  modelAnswered(sandbox: string, answer: ModelAnswer): void;
  /** The agent waits for a person's answer to a question of its own; null when it waits no longer. Without a run nothing happens. */
  personAsked(sandbox: string, question: { readonly until: string | null; readonly text: string } | null): void;
  /** Brings the sandbox back to its snapshot, and the agent's conversation with it; false where no run is there to go on. */
  rollBack(sandbox: string, snapshot: string): Promise<boolean>;
}
