import { resolve } from "node:path";
import { triggerText } from "../../../../base/schema/automation-words.ts";
import { ADD_OPTIONS, specOf } from "../../automation-options.ts";
import { command } from "../../command.ts";

export default command({
  name: "automation add",
  summary: "Add an automation: a trigger with what it starts and the authority it has",
  details:
    "When its trigger fires, the task or the lines run in clones of the project as it is then, the checks verify what comes of it, and it is promoted as far as its authority goes, which is never more than `automations.authority` of your own config allows. Without a trigger it runs when `viv automation run` asks for it.",
  examples: [
    ["viv automation add deps --cron '0 3 * * *' --run 'npm update' --check 'npm test'", "upgrades tried each night, and proposed"],
    ["viv automation add mend --fails 'npm test' --task 'Make the tests pass' --authority act-and-notify", "an agent mends what broke"],
    ["viv automation add format --files 'src/*' --run 'npm run format' --check 'npm test'", "when files change"],
  ],
  options: ADD_OPTIONS,
  positionals: [{ name: "NAME", summary: "What to call it" }],
  async run({ options, positionals: [name = ""], json, screen, cwd, env, client }) {
    const spec = specOf(options, cwd);
    const project = resolve(cwd, options.project ?? ".");
    const server = await client();
    const added = await server.call("addAutomation", { project, name, spec, path: env["PATH"] });
    if (json) return screen.json(added);
    screen.print(`${added.name} waits for ${triggerText(added)}; it may ${added.authority}.`);
    if (added.reason !== null) screen.say(added.reason);
    if (added.secret === null) return;
    screen.print(`Calls: POST /hooks/${added.id}`);
    screen.print(`Secret: ${added.secret}`);
  },
});
