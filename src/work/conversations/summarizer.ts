/** The port of what tells many records in few words. */
import type { ConversationRecord } from "../../base/schema/conversation.ts";

export interface Summarizer {
  /** A text of at most these tokens. Long texts of records come cut. */
  summarize(records: readonly ConversationRecord[], tokens: number): Promise<string>;
}
