import { resolve } from "node:path";
import { VivError } from "../../../base/schema/errors.ts";
import { command } from "../command.ts";
import { confirm } from "../confirm.ts";
import { clean, cleanPath } from "../text.ts";

export default command({
  name: "trust",
  summary: "Trust what a project's vivarium.json asks for",
  details:
    "Shows which rights the file adds and which files of the project its lines run on this machine, and asks. Trust is for the exact content of all of them: after a change it must be given again. Without a terminal viv can't ask, so --yes is needed.",
  examples: [
    ["viv trust", "read it, then say yes"],
    ["viv trust --show", "only show what it asks for"],
    ["viv trust --yes ~/src/app", "without a question"],
  ],
  options: {
    show: { type: "flag", summary: "Only show what the file asks for" },
    yes: { type: "flag", short: "y", summary: "Do not ask" },
  },
  positionals: [{ name: "PATH", summary: "A folder in the project; the current one if left out", optional: true, completes: "path" }],
  async run({ options, positionals: [path = "."], json, screen, cwd, client }) {
    const server = await client();
    const project = resolve(cwd, path);
    const asked = await server.call("trust", { project, dryRun: true });
    if (!json) {
      if (asked.file === null) return screen.print(`${clean(asked.project)} has no vivarium.json; there is nothing to trust.`);
      if (asked.widens.length === 0) return screen.print(`${clean(asked.file)} asks for nothing that needs trust.`);
      screen.print(`${clean(asked.file)} asks for:`);
      for (const { key, value } of asked.widens) screen.print(`  ${clean(key)}: ${clean(value)}`);
      if (asked.runs.length > 0) screen.print(`Its lines run these files of the project on this machine:`);
      for (const file of asked.runs) screen.print(`  ${cleanPath(file)}`);
    }
    if (options.show || asked.trusted || asked.widens.length === 0) {
      return json ? screen.json(asked) : screen.print(asked.trusted ? "It is trusted." : "It is not trusted yet.");
    }
    if (!options.yes) {
      const canAsk = !json && process.stdin.isTTY && process.stderr.isTTY;
      if (!canAsk)
        throw new VivError("untrusted_config", "Trusting a config needs a person's yes.", {
          remedy: "Read the file, then run `viv trust --yes`.",
        });
      if (!(await confirm("Trust this content?"))) {
        screen.say("Not trusted.");
        return 4;
      }
    }
    const report = await server.call("trust", { project, ...(asked.hash === null ? {} : { hash: asked.hash }) });
    return json ? screen.json(report) : screen.print("Trusted.");
  },
});
