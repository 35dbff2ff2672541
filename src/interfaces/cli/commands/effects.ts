import { command } from "../command.ts";
import { ago, clean } from "../text.ts";

export default command({
  name: "effects",
  summary: "Show requests of sandboxes that may have changed something outside",
  details:
    "These are requests of plain HTTP, and of TLS to hosts that have a secret. The proxy does not look into other TLS. `viv network SANDBOX --effects hold` makes them wait for a person.",
  examples: [
    ["viv effects", "the latest ones"],
    ["viv effects try --json", "of one sandbox, for programs"],
  ],
  options: { limit: { type: "integer", value: "N", summary: "Only the newest N" } },
  positionals: [{ name: "SANDBOX", summary: "Id or name", optional: true, completes: "sandbox" }],
  async run({ options: { limit }, positionals: [sandbox], json, screen, client }) {
    const server = await client();
    const answer = await server.call("listEffects", {
      ...(sandbox === undefined ? {} : { sandbox }),
      ...(limit === undefined ? {} : { limit }),
    });
    if (json) return screen.json(answer);
    if (answer.effects.length === 0) return screen.print("No request that can change something outside was sent.");
    screen.table(answer.effects, [
      { title: "AT", value: ({ at }) => ago(at) },
      { title: "SANDBOX", value: (effect) => effect.sandbox.slice(0, 10) },
      { title: "METHOD", value: ({ method }) => clean(method) },
      { title: "URL", value: ({ url }) => clean(url), shrinks: true },
      { title: "STATE", value: ({ state }) => state },
      { title: "STATUS", value: ({ status }) => String(status ?? "-") },
    ]);
  },
});
