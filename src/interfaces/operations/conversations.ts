/** Use cases of conversations. */
import type { Conversations } from "../../work/conversations/conversations.ts";
import type { Handlers } from "./operations.ts";

export function conversationHandlers(conversations: Conversations): Pick<Handlers, "readContext" | "searchConversations"> {
  return {
    readContext: async ({ run, budget, search }) => {
      if (search === undefined) {
        const { records, tokens, entries } = await conversations.view(run, { budgetTokens: budget });
        return { run, records, tokens, entries, hits: [] };
      }
      const { records, tokens } = await conversations.sums(run);
      return { run, records, tokens, entries: [], hits: await conversations.search(search, { run }) };
    },
    searchConversations: async ({ query, project, limit }) => ({ hits: await conversations.search(query, { project }, limit) }),
  };
}
