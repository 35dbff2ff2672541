import { command } from "../command.ts";
import { printEntry, printHits } from "../conversation-lines.ts";
import { findId } from "../references.ts";
import { plural } from "../text.ts";

export default command({
  name: "context",
  summary: "Show the conversation of a run within a budget of tokens, or search it",
  details:
    "Task and decisions are always there; the newest records are whole, earlier ones shortened, and the earliest in summaries. An agent that takes over a run gets the same. The search finds words in all their forms, and texts that mean about the same.",
  examples: [
    ["viv context run01h2x", "what fits 20,000 tokens"],
    ["viv context run01h2x --budget 5000", "less of it"],
    ["viv context run01h2x --search 'failing login test'", "records about that"],
  ],
  options: {
    budget: { type: "integer", value: "N", summary: "Tokens that it may take; 20000 if left out" },
    search: { type: "text", value: "WORDS", summary: "Records that fit these words, the best first" },
  },
  positionals: [{ name: "RUN", summary: "Id of the run, or its beginning" }],
  async run({ options: { budget, search }, positionals: [typed = ""], json, screen, client }) {
    const server = await client();
    const answer = await server.call("readContext", {
      run: await findId(server, "run", typed),
      ...(budget === undefined ? {} : { budget }),
      ...(search === undefined ? {} : { search }),
    });
    if (json) return screen.json(answer);
    if (search !== undefined) return answer.hits.length === 0 ? screen.print("No record fits.") : printHits(screen, answer.hits);
    for (const entry of answer.entries) printEntry(screen, entry);
    const taken = answer.entries.reduce((sum, { tokens }) => sum + tokens, 0);
    screen.say(`${plural(answer.records, "record")} of ${answer.tokens} tokens, shown in ${taken}.`);
  },
});
