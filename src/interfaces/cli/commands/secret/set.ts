import type { InputOf } from "../../../../base/schema/contracts.ts";
import { command } from "../../command.ts";
import { hiddenInput } from "../../hidden-input.ts";
import { askProjects, givenProjects, PROJECT_OPTIONS, shownProjects } from "../../secret-projects.ts";

export default command({
  name: "secret set",
  summary: "Keep or replace a secret that the proxy adds to requests",
  details:
    "viv asks for the value, or reads it from a pipe; it is never an argument. It is used from the next request on. Sandboxes of the named projects may use it; at the first use by any other project the server asks a person. Without a terminal, --project or --all-projects is needed. A secret that is replaced keeps its projects.",
  examples: [
    ["viv secret set anthropic --host api.anthropic.com", "asks for the value"],
    ["viv secret set openai --host api.openai.com --all-projects < key.txt", "the value from a file"],
    ["viv secret set gate --host llm.example.com:8443 --header 'X-Gate: {}' --project .", "another port and header, this project"],
  ],
  options: {
    host: { type: "list", value: "HOST", summary: "Where it may go: example.com, example.com:8443, or *.example.com for all below it" },
    method: { type: "list", value: "METHOD", summary: "Only with this method" },
    path: { type: "text", value: "PATH", summary: "Only below this path" },
    header: { type: "text", value: "HEADER", summary: "Header that carries it, with {} in its place" },
    ...PROJECT_OPTIONS,
  },
  positionals: [{ name: "NAME", summary: "Name of the secret" }],
  async run({ options, positionals: [secret = ""], json, screen, cwd, client }) {
    const { host, method, path, header } = options;
    const server = await client();
    const given = givenProjects(options, cwd);
    const isNew = !(await server.call("listSecrets", {})).secrets.some(({ name }) => name === secret);
    const projects = given === undefined && isNew ? await askProjects(secret, cwd) : given;
    const value = await hiddenInput(`Value of ${secret}: `);
    const kept = await server.call("setSecret", {
      secret,
      value,
      hosts: [...host],
      // The server knows which methods there are.
      methods: method.map((one) => one.toUpperCase()) as InputOf<"setSecret">["methods"],
      path: path ?? null,
      header: header ?? null,
      ...(projects === undefined ? {} : { projects }),
    });
    if (json) screen.json(kept);
    else
      screen.print(
        `${kept.name} is kept for ${kept.hosts.join(", ")} and projects: ${shownProjects(kept.projects)}. Inside, ${kept.placeholder} stands for it.`,
      );
  },
});
