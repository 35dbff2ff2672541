import { resolve } from "node:path";
import { approverToken } from "../approver.ts";
import { command } from "../command.ts";
import { clean } from "../text.ts";
import { parsePort, usageError } from "../values.ts";

export default command({
  name: "network allow-private",
  summary: "Open a host with a private address for a project's sandboxes",
  details:
    "For example for a company's package registry. The rule applies at once, to running and new sandboxes, on this port only; metadata services stay closed. Only a person may do it, on a terminal. `viv policy rules` lists the rule, and `viv policy forget` removes it.",
  examples: [
    ["viv network allow-private npm.corp.internal:4873", "for the project of this folder"],
    ["viv network allow-private --project ~/src/app 10.0.0.7:443", "for another one"],
  ],
  options: {
    project: { type: "text", short: "p", value: "PATH", completes: "path", summary: "The project; the one of this folder if left out" },
  },
  positionals: [{ name: "HOST:PORT", summary: "A name or an address, and its port" }],
  async run({ options, positionals: [place = ""], json, screen, env, cwd, client }) {
    const [, name, address, port] = /^(?:([^:[\]]+)|\[([^\]]+)\]):([^:]+)$/.exec(place) ?? [];
    const host = name ?? address;
    if (host === undefined || port === undefined)
      throw usageError(`A host and a port are needed, such as npm.corp.internal:4873, not ${JSON.stringify(place)}.`);
    const opened = await (
      await client()
    ).call("allowPrivate", {
      project: resolve(cwd, options.project ?? "."),
      host: host.toLowerCase(),
      port: parsePort("HOST:PORT", port),
      approver: approverToken(env),
    });
    if (json) screen.json(opened);
    else screen.print(`Sandboxes of ${clean(opened.project)} reach ${clean(place)}.`);
  },
});
