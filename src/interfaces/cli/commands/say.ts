import type { RunMessage } from "../../../base/schema/run.ts";
import { command, type OptionDeclarations } from "../command.ts";
import { findId, shortId } from "../references.ts";
import { usageError } from "../values.ts";

const OPTIONS = {
  urgent: { type: "flag", summary: "Before all other messages that wait" },
  "after-turn": { type: "flag", summary: "Not before the agent has ended what it does now" },
} as const satisfies OptionDeclarations;

/** What became of it so far, for people. */
function fate({ state, reason }: RunMessage): string {
  if (state === "delivered") return "The agent has it.";
  if (state === "failed") return `It was not delivered: ${reason ?? ""}`;
  return "It is kept, and the agent gets it as soon as it can take it.";
}

export default command({
  name: "say",
  summary: "Say something to an agent that works",
  details:
    "The message is kept at once and given to the agent at its next tool call, where the agent can take messages then, else after its turn. It is given once, also if the server is restarted meanwhile. `viv tasks` shows the agents.",
  examples: [
    ['viv say run1a2b3 "Use the existing helper in src/lib"', "at its next tool call"],
    ['viv say run1a2b3 "Stop refactoring" --urgent', "before other messages"],
  ],
  options: OPTIONS,
  positionals: [
    { name: "RUN", summary: "Id of a run, or enough of its beginning", completes: "run" },
    { name: "TEXT", summary: "The message, quoted as one word" },
  ],
  async run({ positionals: [reference = "", text = ""], options, json, screen, client }) {
    if (options.urgent && options["after-turn"]) throw usageError("Choose one of --urgent and --after-turn.");
    const server = await client();
    const run = await findId(server, "run", reference);
    const way = options.urgent ? "urgent" : options["after-turn"] ? "after-turn" : "steer";
    const message = await server.call("sayToRun", { run, text, way });
    if (json) return screen.json(message);
    screen.print(`${shortId(message.id)}: ${fate(message)}`);
  },
});
