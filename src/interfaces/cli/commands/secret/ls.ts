import { command } from "../../command.ts";
import { shownProjects } from "../../secret-projects.ts";
import { ago } from "../../text.ts";

export default command({
  name: "secret ls",
  summary: "List secrets and where they may go; never their values",
  examples: [
    ["viv secret ls", "all of them"],
    ["viv secret ls --json", "for programs"],
  ],
  options: {},
  positionals: [],
  async run({ json, screen, client }) {
    const answer = await (await client()).call("listSecrets", {});
    if (json) return screen.json(answer);
    if (answer.secrets.length === 0) return screen.print("No secrets are kept.");
    screen.table(answer.secrets, [
      { title: "NAME", value: ({ name }) => name },
      { title: "HOSTS", value: ({ hosts }) => hosts.join(", "), shrinks: true },
      { title: "PROJECTS", value: ({ projects }) => shownProjects(projects), shrinks: true },
      { title: "METHODS", value: ({ methods }) => (methods.length === 0 ? "any" : methods.join(", ")) },
      { title: "PATH", value: ({ path }) => path ?? "any" },
      { title: "PLACEHOLDER", value: ({ placeholder }) => placeholder },
      { title: "CHANGED", value: ({ changedAt }) => ago(changedAt) },
    ]);
  },
});
