import type { AuditRecord } from "../../schema/audit.ts";
import { command } from "../command.ts";
import type { Screen } from "../screen.ts";
import { clean, plural } from "../text.ts";

const PAGE = 1000;

/** A line of the story: what was done, to what, and by whose leave. */
function tell(screen: Screen, { at, actor, action, target, label, rule, reason }: AuditRecord): void {
  const colour = label === "DENIED" ? "red" : label === "APPROVED" ? "green" : "dim";
  const who = actor.kind === "server" ? "" : `${actor.kind} ${clean(actor.name)}  `;
  const why = [rule === null ? "" : `rule ${clean(rule)}`, reason === null ? "" : clean(reason)].filter((text) => text !== "").join(", ");
  const what = target === "" ? clean(action) : `${clean(action)}: ${clean(target)}`;
  screen.print(`${at.slice(0, 19).replace("T", " ")}  ${who}${what} ${screen.paint(colour, `[${label}]`)}${why === "" ? "" : `  ${why}`}`);
}

export default command({
  name: "audit",
  summary: "Show who decided what, or verify that nothing of it was changed",
  details:
    "Every record holds the hash of the one before. `--verify` reads all of them and names the first bad one; the newest hash, noted elsewhere, proves everything before it.",
  examples: [
    ["viv audit", "everything, as a story"],
    ["viv audit try", "what concerns one sandbox, by name, or by id once it is gone"],
    ["viv audit --verify", "is the chain whole"],
  ],
  options: {
    verify: { type: "flag", summary: "Read the whole chain; exit code 1 if it is not whole." },
    limit: { type: "integer", value: "N", summary: "Only the last N records." },
  },
  positionals: [{ name: "SANDBOX", summary: "Id or name", optional: true, completes: "sandbox" }],
  async run({ options, positionals: [sandbox], json, screen, client: connect }) {
    const client = await connect();
    if (options.verify) {
      const report = await client.call("verifyAudit", {});
      if (json) screen.json(report);
      else if (report.whole) screen.print(`${plural(report.records, "record")}, the chain is whole. Newest: ${report.newest}`);
      else screen.print(screen.paint("red", report.problem ?? "The chain is not whole."));
      return report.whole ? 0 : 1;
    }
    const records: AuditRecord[] = [];
    for (let after = 0; ;) {
      const page = (await client.call("listAudit", { after, limit: PAGE, ...(sandbox === undefined ? {} : { sandbox }) })).records;
      records.push(...page);
      after = page.at(-1)?.sequence ?? after;
      if (page.length < PAGE) break;
    }
    const shown = options.limit === undefined ? records : records.slice(-options.limit);
    if (json) return screen.json({ records: shown });
    for (const record of shown) tell(screen, record);
    if (shown.length === 0) screen.print("Nothing was decided yet.");
  },
});
