import { VivError } from "../../../base/schema/errors.ts";
import { openPort } from "../../client/local-port.ts";
import type { EventType } from "../../../base/schema/event.ts";
import type { Sandbox } from "../../../base/schema/sandbox.ts";
import { command } from "../command.ts";
import { follow, type FollowParts } from "../follow.ts";
import { clean } from "../text.ts";
import { definedOnly } from "../defined-only.ts";
import { showLink } from "../browser.ts";
import { parsePort, usageError } from "../values.ts";
import { isEnded } from "./ls.ts";

const ENDINGS: ReadonlySet<EventType> = new Set(["sandbox.completed", "sandbox.failed", "sandbox.removed"]);

export default command({
  name: "port",
  summary: "Open a local port that leads to a port inside a sandbox",
  details:
    "With --open, it prints a link instead that shows the port in a browser at an origin of its own, http://PORT-SANDBOX.localhost, with WebSockets and hot reload; the link lets one browser in, once, which stays in for a day. Else it listens on 127.0.0.1 until ctrl-C or the end of the sandbox, which is in use meanwhile and does not become idle. With --json the address is printed once, as soon as it listens.",
  examples: [
    ["viv port try 3000", "http://127.0.0.1:3000 is port 3000 inside"],
    ["viv port try 3000 8080", "local port 8080 leads to 3000 inside"],
    ["viv port try 5432 0", "any free local port; it is printed"],
    ["viv port try 3000 --open", "show it in a browser"],
    ["viv port try 3000 --open --path /admin", "begin at another page"],
    ["viv port try 3000 --close", "shut all browsers out of the sandbox's previews"],
  ],
  options: {
    open: { type: "flag", summary: "Show it in a browser, at an origin of its own" },
    path: { type: "text", value: "PATH", summary: "With --open: the page that is shown first" },
    close: { type: "flag", summary: "Shut all browsers out of the sandbox's previews" },
    "no-browser": { type: "flag", summary: "With --open: print the link, and open nothing" },
  },
  positionals: [
    { name: "SANDBOX", summary: "Id or name", completes: "sandbox" },
    { name: "PORT", summary: "Port inside" },
    { name: "LOCAL", summary: "Local port; the same number if left out, 0 for any free one", optional: true },
  ],
  async run({ positionals: [name = "", inside = "", local = inside], options, json, screen, env, client }) {
    const port = parsePort("PORT", inside);
    if (options.close) {
      const done = await (await client()).call("closePreviews", { sandbox: name });
      return json ? screen.json(done) : screen.print(`No browser sees a preview of ${name} any more.`);
    }
    if (options.open) {
      const link = await (await client()).call("openPreview", { sandbox: name, port, ...definedOnly({ path: options.path }) });
      return json ? screen.json(link) : showLink(link, { screen, env, quiet: options["no-browser"] });
    }
    if (options.path !== undefined) throw usageError("--path goes with --open.");
    const wanted = local === "0" ? 0 : parsePort("LOCAL", local);
    const server = await client();
    const sandbox = await server.call("findSandbox", { sandbox: name });
    if (isEnded(sandbox.state)) throw ended(sandbox);
    const opened = await openPort(server, { sandbox: sandbox.id, port }, wanted, (error) =>
      screen.say(`viv: a connection failed: ${clean(error.message)}`),
    );
    const address = opened.port;
    // Before the caller is told that it is there.
    const stop = new AbortController();
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
    if (json) screen.json({ sandbox: sandbox.id, port, local: address, address: `127.0.0.1:${address}` });
    else screen.print(`127.0.0.1:${address} leads to port ${port} in ${sandbox.name}. Ctrl-C ends it.`);
    try {
      await untilEnded({ client: server, screen, env, say: (line) => screen.say(line) }, sandbox, port, stop.signal);
    } finally {
      await opened.close();
    }
  },
});

/** The sandbox is in use meanwhile. Rejects when it ends; resolves at the signal. */
async function untilEnded(around: FollowParts, sandbox: Sandbox, port: number, signal: AbortSignal): Promise<void> {
  const states = follow(around, {
    look: async () => (await around.client.call("listSandboxes", {})).sandboxes.find(({ id }) => id === sandbox.id),
    concerns: (event) => event.sandbox === sandbox.id,
    isStep: ({ type }) => !ENDINGS.has(type),
    isOver: (now) => now === undefined || isEnded(now.state),
    uses: { uses: sandbox.id, as: `port ${port}` },
    signal,
  });
  for await (const now of states) {
    if (now === undefined) throw new VivError("not_found", `Sandbox ${sandbox.name} was removed; the port is closed.`);
    if (isEnded(now.state)) throw ended(now);
  }
}

function ended({ name, state, reason }: Sandbox): VivError {
  const why = reason === null ? "" : ` (${clean(reason)})`;
  return new VivError("not_running", `Sandbox ${name} ${state === "failed" ? "has failed" : "was stopped"}${why}; the port is closed.`, {
    remedy: `\`viv start ${name}\` brings it back with its files; then start what listens in it, and open the port again.`,
  });
}
