/** What was said and done in a run, as it is kept; and what a reader with a budget of tokens gets of it. */
import { z } from "zod";
import { contract, count, ProjectPath } from "./contract.ts";
import { RunId } from "./ids.ts";
import { LIMITS } from "./limits.ts";
import { ChosenModel } from "./model.ts";
import { ROUTES } from "./routes.ts";

const ConversationRole = z
  .enum(["task", "person", "agent", "tool", "system", "guardian"])
  .describe("Who speaks: the task itself, a person, the agent, a tool that it used, the server, or the guardian.");
export type ConversationRole = z.infer<typeof ConversationRole>;

const ConversationKind = z
  .enum(["text", "tool-call", "tool-result", "decision", "summary"])
  .describe("What it is: a message, a call of a tool, what that gave, a decision, or a summary of earlier records.");
export type ConversationKind = z.infer<typeof ConversationKind>;

export const ConversationRecord = z
  .object({
    sequence: z.number().int().describe("Position in the conversation of the run, from 1 on, without gaps."),
    at: z.string().describe("ISO time."),
    role: ConversationRole,
    kind: ConversationKind,
    text: z.string().describe("What was said. Of very long output the beginning and the end; the log of the command has the rest."),
    tokens: z.number().int().describe("About how many tokens the text is to a model."),
    tool: z.string().nullable().describe("Name of the tool, for a call and its result."),
    callId: z.string().nullable().describe("What joins a call and its result."),
    pinned: z.boolean().describe("Every view shows it. Tasks and decisions are pinned; calls and results never are."),
  })
  .describe("One record of a conversation. Records are only ever added.")
  .meta({ id: "ConversationRecord" });
export type ConversationRecord = z.infer<typeof ConversationRecord>;

export const ContextEntry = ConversationRecord.omit({ sequence: true })
  .extend({
    from: z.number().int().describe("The first record that it stands for."),
    to: z.number().int().describe("The last one; the same for a single record."),
    form: z.enum(["whole", "shortened", "summary"]).describe("whole is as it was kept; a summary stands for several records."),
    tokens: z.number().int().describe("What it takes of the budget."),
  })
  .describe("A part of a view: a record, or a summary of several.")
  .meta({ id: "ContextEntry" });
export type ContextEntry = z.infer<typeof ContextEntry>;

export const ConversationHit = ConversationRecord.omit({ text: true, pinned: true, tokens: true })
  .extend({
    run: z.string().describe("Id of the run."),
    project: z.string().describe("Folder of its project."),
    excerpt: z.string().describe("The part of its text that fits best."),
    by: z.array(z.enum(["words", "meaning"])).describe("How it was found."),
  })
  .describe("A record that a search found.")
  .meta({ id: "ConversationHit" });
export type ConversationHit = z.infer<typeof ConversationHit>;

export const MemoryConfig = z
  .strictObject({
    embeddings: z
      .strictObject({
        provider: z.string().min(1).max(32).describe("Name of a model API of `models` that speaks like OpenAI's."),
        model: z.string().min(1).max(128).describe("Its model for embeddings, such as `text-embedding-3-small`."),
      })
      .optional()
      .describe(
        "Whose vectors searches by meaning compare. Texts of conversations are sent there; if left out, nothing leaves the machine.",
      ),
    summaries: ChosenModel.optional().describe(
      "Model that shortens the older parts of a conversation for an agent that is restarted or takes over. They are sent there, and the run pays; if left out, or if the model fails, the server chooses sentences itself.",
    ),
  })
  .prefault({})
  .describe("How conversations of runs are searched and shortened.");
export type MemoryConfig = z.infer<typeof MemoryConfig>;

const Query = z.string().min(1).max(LIMITS.conversationQueryCharacters).describe("Words to search for, in any form and order.");
const hits = z.array(ConversationHit).describe("The best first.");

export const CONVERSATION_CONTRACTS = {
  readContext: contract(
    ROUTES.readContext,
    "The conversation of a run, within a budget of tokens; or what of it fits a search",
    z.strictObject({
      run: RunId,
      budget: count(LIMITS.leastContextTokens, LIMITS.mostContextTokens)
        .default(LIMITS.defaultContextTokens)
        .describe("Tokens that the entries may take together."),
      search: Query.optional().describe("Answer the records that fit this instead of a view."),
    }),
    z.object({
      run: z.string().describe("Id of the run."),
      records: z.number().int().describe("Records of the whole conversation."),
      tokens: z.number().int().describe("Tokens of the whole conversation."),
      entries: z.array(ContextEntry).describe("In their order: task and decisions, older records in short, the newest ones whole."),
      hits,
    }),
  ),
  searchConversations: contract(
    ROUTES.searchConversations,
    "Records of all conversations that fit a search, by words and by meaning",
    z.strictObject({
      query: Query,
      project: ProjectPath.optional().describe("Only runs of this project."),
      limit: count(1, LIMITS.mostConversationHits).default(LIMITS.conversationHits).describe("At most."),
    }),
    z.object({ hits }),
  ),
} as const;
