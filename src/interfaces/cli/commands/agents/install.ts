import { KNOWN_AGENTS } from "../../../../base/schema/known-agents.ts";
import { AGENT } from "../../agent-login.ts";
import { command } from "../../command.ts";
import { clean } from "../../text.ts";
import { usageError } from "../../values.ts";

export default command({
  name: "agents install",
  summary: "Fetch an agent's program with npm, in the version that viv was tried with",
  details:
    "It lies in the server's own folder, read-only, and every sandbox sees it there. No script of the package is run. An agent that is fetched already stays as it is. It is taken before one on your PATH.",
  examples: [["viv agents install claude", "fetch Claude Code"]],
  options: {},
  positionals: [AGENT],
  async run({ positionals: [agent = ""], json, screen, client }) {
    const known = Object.hasOwn(KNOWN_AGENTS, agent) ? KNOWN_AGENTS[agent] : undefined;
    if (known === undefined)
      throw usageError(
        `There is no agent ${clean(agent)} that can be installed.`,
        `The agents are ${Object.keys(KNOWN_AGENTS).join(", ")}.`,
      );
    const server = await client();
    const installed = await screen.during(`Fetching ${known.package} ${known.version}`, server.call("installAgent", { agent }));
    if (json) return screen.json(installed);
    screen.print(`${installed.title} ${installed.version ?? ""} is at ${installed.program ?? ""}, here and in every sandbox.`);
    if (installed.login === "missing") screen.say(`Give it its login with: viv agents login ${agent}`);
  },
});
