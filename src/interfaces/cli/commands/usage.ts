import { resolve } from "node:path";
import { command } from "../command.ts";

const cost = (micro: number): string => `$${(micro / 1_000_000).toFixed(4)}`;

export default command({
  name: "usage",
  summary: "Show tokens and cost of models, by sandbox, day and model",
  details:
    "The model gateway counts them outside the sandboxes; the list keeps what removed sandboxes used. Prices: `prices` of the user config.",
  examples: [
    ["viv usage", "all of it"],
    ["viv usage try", "of one sandbox, by name, or by id once it is gone"],
    ["viv usage --day 2030-01-31 --json", "of one day, for programs"],
  ],
  options: {
    project: { type: "text", short: "p", value: "PATH", completes: "path", summary: "Only of this project" },
    day: { type: "text", value: "DAY", summary: "Only this day (UTC)" },
  },
  positionals: [{ name: "SANDBOX", summary: "Id or name", optional: true, completes: "sandbox" }],
  async run({ options: { project, day }, positionals: [sandbox], json, screen, cwd, client }) {
    const server = await client();
    const report = await server.call("usage", {
      ...(sandbox === undefined ? {} : { sandbox }),
      ...(project === undefined ? {} : { project: resolve(cwd, project) }),
      ...(day === undefined ? {} : { day }),
    });
    if (json) return screen.json(report);
    if (report.usage.length === 0) return screen.print("No model was asked yet.");
    screen.table(report.usage, [
      { title: "DAY", value: (row) => row.day },
      { title: "SANDBOX", value: (row) => row.name },
      { title: "MODEL", value: (row) => `${row.provider}/${row.model}`, shrinks: true },
      { title: "REQUESTS", value: (row) => String(row.requests) },
      { title: "INPUT", value: (row) => String(row.inputTokens + row.cacheWriteTokens) },
      { title: "CACHED", value: (row) => String(row.cacheReadTokens) },
      { title: "OUTPUT", value: (row) => String(row.outputTokens) },
      { title: "COST", value: (row) => cost(row.microDollars) },
    ]);
    const left = Object.entries(report.budgets).map(([scope, most]) => `$${most} per ${scope}`);
    screen.print(
      `${cost(report.microDollars)} in all, ${cost(report.todayMicroDollars)} today.${left.length === 0 ? "" : ` Budgets: ${left.join(", ")}.`}`,
    );
  },
});
