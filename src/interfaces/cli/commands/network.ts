import { EFFECTS_MODES, NETWORK_MODES } from "../../../base/schema/choices.ts";
import type { EffectsMode, NetworkMode, NetworkReport } from "../../../base/schema/network.ts";
import { command } from "../command.ts";
import { bytes } from "../text.ts";
import { parsePort } from "../values.ts";

export default command({
  name: "network",
  summary: "Show what a sandbox reaches, or change it while it runs",
  details:
    "Connections that are no longer allowed are closed at once. Commands that run already keep the variables they were started with.",
  examples: [
    ["viv network try", "what it reaches, and what it used"],
    ["viv network try --mode public", "every public host, on ports 80 and 443"],
    ["viv network try --mode allow-list --allow packages.example.com", "this host alone"],
    ["viv network try --mode off", "nothing"],
  ],
  options: {
    mode: { type: "text", completes: NETWORK_MODES, value: "MODE", summary: "off, allow-list or public" },
    allow: { type: "list", value: "HOST", summary: "One more host: example.com, *.example.com, example.com:8443, or a public address" },
    effects: {
      type: "text",
      completes: EFFECTS_MODES,
      value: "MODE",
      summary: "record, or hold: requests that change something wait for a person",
    },
    deny: { type: "list", value: "HOST", summary: "One more host that is never reached" },
  },
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ options: { mode, allow, deny, effects }, positionals: [sandbox = ""], json, screen, client }) {
    const server = await client();
    const report =
      mode === undefined && effects === undefined && allow.length === 0 && deny.length === 0
        ? await server.call("inspectNetwork", { sandbox })
        : await server.call("changeNetwork", {
            sandbox,
            // The server knows which modes there are.
            ...(mode === undefined ? {} : { mode: mode as NetworkMode }),
            ...(effects === undefined ? {} : { effects: effects as EffectsMode }),
            ...(allow.length === 0 ? {} : { allow: allow.map(hostRule) }),
            ...(deny.length === 0 ? {} : { deny: [...deny] }),
          });
    if (json) screen.json(report);
    else for (const line of linesOf(report)) screen.print(line);
  },
});

/** A host, or one port of it. */
function hostRule(text: string): string | { host: string; ports: number[] } {
  const [, host = "", port = ""] = /^([^:]+):(\d+)$/.exec(text) ?? [];
  return host === "" ? text : { host, ports: [parsePort("--allow", port)] };
}

function linesOf({ name, rules, connections, sentBytes, receivedBytes, allowed, denied }: NetworkReport): string[] {
  if (rules.mode === "off") return [`${name} has no network.`];
  const hosts = rules.allow.map(
    ({ host, ports, tcp }) => `${host}${ports === undefined ? "" : `:${ports.join(",")}`}${tcp ? " (any protocol)" : ""}`,
  );
  return [
    `${name} reaches ${rules.mode === "public" ? "every public host" : "the hosts allowed"}, on ports ${rules.ports.join(", ")}.`,
    ...(hosts.length === 0 ? [] : [`allowed: ${hosts.join(", ")}`]),
    ...(rules.production.length === 0 ? [] : [`never: ${rules.production.join(", ")}`]),
    `${allowed} requests allowed, ${denied} denied; ${connections} connections open, ${bytes(sentBytes)} sent, ${bytes(receivedBytes)} received.`,
  ];
}
