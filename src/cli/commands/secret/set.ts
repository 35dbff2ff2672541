import type { InputOf } from "../../../schema/contracts.ts";
import { command } from "../../command.ts";
import { hiddenInput } from "../../hidden-input.ts";

export default command({
  name: "secret set",
  summary: "Keep a secret that requests get outside the sandbox, or replace it",
  details: "The value is asked for, or read from a pipe; never an argument. It counts from the next request on.",
  examples: [
    ["viv secret set anthropic --host api.anthropic.com", "asks for the value"],
    ["viv secret set openai --host api.openai.com < key.txt", "the value from a file"],
    ["viv secret set gate --host llm.example.com --header 'X-Gate: {}'", "carried by another header"],
  ],
  options: {
    host: { type: "list", value: "HOST", summary: "Where it may go: example.com, or *.example.com for all below it" },
    method: { type: "list", value: "METHOD", summary: "Only with this method" },
    path: { type: "text", value: "PATH", summary: "Only below this path" },
    header: { type: "text", value: "HEADER", summary: "Header that carries it, with {} in its place" },
  },
  positionals: [{ name: "NAME", summary: "Name of the secret" }],
  async run({ options: { host, method, path, header }, positionals: [secret = ""], json, screen, client }) {
    const server = await client();
    const value = await hiddenInput(`Value of ${secret}: `);
    const kept = await server.call("setSecret", {
      secret,
      value,
      hosts: [...host],
      // The server knows which methods there are.
      methods: method.map((one) => one.toUpperCase()) as InputOf<"setSecret">["methods"],
      path: path ?? null,
      header: header ?? null,
    });
    if (json) screen.json(kept);
    else screen.print(`${kept.name} is kept for ${kept.hosts.join(", ")}. Inside, ${kept.placeholder} stands for it.`);
  },
});
