import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { OutputOf } from "../../../base/schema/contracts.ts";
import type { CodeOutput } from "../../../base/schema/notebook.ts";
import type { Client } from "../../client/client.ts";
import { command } from "../command.ts";
import type { Screen } from "../screen.ts";
import { clean } from "../text.ts";
import { usageError } from "../values.ts";

/** Forms that are worth a file, and how it ends. */
const FILES: readonly (readonly [type: string, ending: string, encoding: "base64" | "utf8"])[] = [
  ["image/png", "png", "base64"],
  ["image/jpeg", "jpg", "base64"],
  ["image/svg+xml", "svg", "utf8"],
  ["text/html", "html", "utf8"],
];

/** Tells outputs as text; forms that are no text go to files, if a folder was named. */
class OutputPrinter {
  readonly #screen: Screen;
  readonly #folder: string | undefined;
  #files = 0;

  constructor(screen: Screen, folder: string | undefined) {
    this.#screen = screen;
    this.#folder = folder;
  }

  print(output: CodeOutput): void {
    if ("text" in output) process[output.kind].write(this.#shown(output.text));
    else if (output.kind === "error") process.stderr.write(`${this.#shown(output.traceback)}\n`);
    else this.#rich(output.data);
  }

  /** Colours and the like are for terminals, and only those that a person asked for: code inside must not move the cursor. */
  #shown(said: string): string {
    return this.#screen.terminal ? said.split("\n").map(clean).join("\n") : said;
  }

  #rich(data: Readonly<Record<string, unknown>>): void {
    const form = FILES.find(([type]) => typeof data[type] === "string");
    if (form !== undefined && this.#folder !== undefined) return this.#save(form, String(data[form[0]]));
    const plain = data["text/plain"];
    process.stdout.write(`${typeof plain === "string" ? this.#shown(plain) : `[${Object.keys(data).map(clean).join(", ")}]`}\n`);
  }

  #save([, ending, encoding]: (typeof FILES)[number], content: string): void {
    const folder = this.#folder ?? ".";
    mkdirSync(folder, { recursive: true });
    const path = join(folder, `output-${++this.#files}.${ending}`);
    writeFileSync(path, Buffer.from(content, encoding));
    process.stdout.write(`${path}\n`);
  }
}

async function codeFrom(given: string | undefined, file: string | undefined): Promise<string> {
  if (given !== undefined && file !== undefined) throw usageError("Give the code or --file, not both.");
  if (file !== undefined) return readFileSync(file, "utf8");
  if (given !== undefined && given !== "-") return given;
  if (given === undefined && process.stdin.isTTY)
    throw usageError("There is no code to run.", "Give it as an argument, with --file, or on standard input.");
  return text(process.stdin);
}

async function follow(client: Client, sandbox: string, id: string, printer: OutputPrinter): Promise<OutputOf<"inspectExecution">["state"]> {
  const stop = new AbortController();
  let state: OutputOf<"inspectExecution">["state"] = "failed";
  for await (const event of client.executionEvents(sandbox, id, stop.signal)) {
    if (event.type === "output") printer.print(event.output);
    else {
      state = event.execution.state;
      if (event.execution.reason !== null) process.stderr.write(`viv: ${clean(event.execution.reason)}\n`);
    }
  }
  return state;
}

export default command({
  name: "python",
  summary: "Run Python in a sandbox, piece by piece, with what the pieces before left",
  details:
    "Variables stay in the context from one call to the next. The exit code is 0, or 1 where the code failed or was interrupted. Ctrl-C interrupts it. Needs Jupyter on the machine (jupyter-server and python3-ipykernel of Debian, or pip's).",
  examples: [
    ["viv python try 'x = 41'", "a variable"],
    ["viv python try 'x + 1'", "is still there: 42"],
    ["viv python try --file plot.py --save pictures", "pictures and HTML go to files"],
    ["viv python try --context other 'x'", "another context has its own"],
    ["viv python try --restart", "begin anew"],
  ],
  options: {
    context: { type: "text", value: "NAME", summary: "Which context; main if left out" },
    file: { type: "text", short: "f", value: "FILE", completes: "path", summary: "Run the code of a file of this machine" },
    save: { type: "text", value: "FOLDER", completes: "path", summary: "Write pictures and HTML to files in a folder" },
    timeout: { type: "duration", value: "TIME", summary: "Interrupt it after this time" },
    interrupt: { type: "flag", summary: "End what runs in the context; its variables stay" },
    restart: { type: "flag", summary: "Begin the context anew, without its variables" },
    remove: { type: "flag", summary: "End the context" },
    contexts: { type: "flag", summary: "List the contexts of the sandbox" },
  },
  positionals: [
    { name: "SANDBOX", summary: "Id or name", completes: "sandbox" },
    { name: "CODE", summary: "The code; - for standard input", optional: true },
  ],
  async run({ positionals: [sandbox = "", given], options, json, screen, client }) {
    const server = await client();
    const context = options.context ?? "main";
    if (options.contexts) {
      const answer = await server.call("listContexts", { sandbox });
      if (json) return screen.json(answer);
      return answer.contexts.forEach(({ name, language, state }) => screen.print(`${clean(name)}  ${clean(language)}  ${clean(state)}`));
    }
    const toContext = (["interrupt", "restart", "remove"] as const).find((flag) => options[flag]);
    if (toContext !== undefined) {
      const answer = await server.call(`${toContext}Context`, { sandbox, context });
      return json ? screen.json(answer) : undefined;
    }
    const code = await codeFrom(given, options.file);
    const input = { sandbox, context, code, ...(options.timeout === undefined ? {} : { timeout: `${options.timeout}ms` }) };
    if (json) {
      const execution = await server.call("executeCode", input);
      screen.json(execution);
      return execution.state === "done" ? 0 : 1;
    }
    const { id } = await screen.during("Starting Python", server.call("executeCode", { ...input, background: true }));
    process.once("SIGINT", () => void server.call("interruptContext", { sandbox, context }).catch(() => undefined));
    return (await follow(server, sandbox, id, new OutputPrinter(screen, options.save))) === "done" ? 0 : 1;
  },
});
