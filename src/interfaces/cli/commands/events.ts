import { command } from "../command.ts";
import type { VivEvent } from "../../../base/schema/event.ts";
import type { Screen } from "../screen.ts";
import { clean } from "../text.ts";

const PAGE = 1000;
const SHOWN = 50;

function line(screen: Screen, event: VivEvent): string {
  const details = Object.entries(event.data)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
  const about = event.sandbox === null ? "" : ` ${event.sandbox}`;
  return `${screen.paint("dim", `${event.sequence} ${event.at}`)} ${screen.paint("cyan", event.type)}${about} ${clean(details)}`.trimEnd();
}

export default command({
  name: "events",
  summary: "Show what happened",
  details: "Without --after it shows the newest. With --follow and --json each event is one JSON value on a line of its own.",
  examples: [
    ["viv events", `the newest ${SHOWN}`],
    ["viv events -f", "and go on as they come"],
    ["viv events --after 0 --sandbox try --json", "all of one sandbox, for programs"],
  ],
  options: {
    follow: { type: "flag", short: "f", summary: "Go on until ctrl-C" },
    after: { type: "integer", value: "N", summary: "Only those after this sequence number" },
    sandbox: { type: "text", value: "SANDBOX", completes: "sandbox", summary: "Only those about this sandbox" },
  },
  positionals: [],
  async run({ options, json, screen, client }) {
    const server = await client();
    const about = options.sandbox === undefined ? {} : { sandbox: options.sandbox };
    const after = options.after ?? Math.max(0, (await server.call("listEvents", { ...about, limit: 1 })).newest - SHOWN);
    if (options.follow) {
      const stop = new AbortController();
      for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
      for await (const event of server.events(after, { ...about, signal: stop.signal })) {
        if (json) screen.jsonLine(event);
        else screen.print(line(screen, event));
      }
      return;
    }
    const events: VivEvent[] = [];
    for (let from = after; ;) {
      const page = await server.call("listEvents", { ...about, after: from, limit: PAGE });
      events.push(...page.events);
      const last = page.events.at(-1);
      if (last === undefined || page.events.length < PAGE) break;
      from = last.sequence;
    }
    if (json) return screen.json({ events });
    for (const event of events) screen.print(line(screen, event));
  },
});
