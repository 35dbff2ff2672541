import { command } from "../command.ts";
import { findId, shortId } from "../references.ts";

export default command({
  name: "interrupt",
  summary: "End what an agent does now; it goes on with what it is told next",
  details: "With --stop the agent is ended, and its work is kept and judged by the checks.",
  examples: [
    ["viv interrupt run1a2b3", "its turn ends; a message that waits begins the next"],
    ["viv interrupt run1a2b3 --stop", "the agent ends; its work stays"],
  ],
  options: { stop: { type: "flag", summary: "End the agent, and keep its work" } },
  positionals: [{ name: "RUN", summary: "Id of a run, or enough of its beginning", completes: "run" }],
  async run({ positionals: [reference = ""], options, json, screen, client }) {
    const server = await client();
    const run = await findId(server, "run", reference);
    const now = await server.call(options.stop ? "stopRun" : "interruptRun", { run });
    if (json) return screen.json(now);
    screen.print(`${shortId(run)}: ${options.stop ? "the agent is being ended; its work is kept" : "its turn is being ended"}`);
  },
});
