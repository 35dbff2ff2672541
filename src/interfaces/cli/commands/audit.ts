import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../../client/client.ts";
import type { AuditRecord } from "../../../base/schema/audit.ts";
import { AuditStory } from "../audit-story.ts";
import { command } from "../command.ts";
import type { Screen } from "../screen.ts";
import { plural } from "../text.ts";
import { parseDuration, usageError } from "../values.ts";

const PAGE = 1000;
const SHOWN = 200;
const LOOK_AGAIN_MS = 500;

interface AuditFilter {
  readonly sandbox?: string;
  readonly action?: string;
  readonly since?: string;
}

async function verify(client: Client, screen: Screen, json: boolean, noted: string | undefined): Promise<number> {
  const report = await client.call("verifyAudit", noted === undefined ? {} : { noted });
  if (json) screen.json(report);
  else if (report.whole) {
    screen.print(screen.paint("green", `${plural(report.records, "record")}, the chain is whole.`));
    if (report.records > 0) screen.print(`Newest: ${report.records}:${report.newest}`);
  } else screen.print(screen.paint("red", `Not whole from record ${report.firstBad} on. ${report.problem ?? ""}`));
  return report.whole ? 0 : 1;
}

/** All that fits, page by page; or the newest `limit` of it. */
async function read(client: Client, asked: AuditFilter, limit: number | undefined): Promise<AuditRecord[]> {
  if (limit !== undefined && limit <= PAGE)
    return limit === 0 ? [] : (await client.call("listAudit", { ...asked, newest: true, limit })).records;
  const records: AuditRecord[] = [];
  for (let after = 0; ;) {
    const page = (await client.call("listAudit", { ...asked, after, limit: PAGE })).records;
    records.push(...page);
    after = page.at(-1)?.sequence ?? after;
    if (page.length < PAGE) return limit === undefined ? records : records.slice(-limit);
  }
}

/** A time, or how long ago. */
function sinceOf(text: string): string {
  if (/^\d{4}-/.test(text)) {
    const time = new Date(text);
    if (Number.isNaN(time.getTime()))
      throw usageError(`--since takes a time such as 2026-11-16T09:30 or a duration such as 2h, not ${text}.`);
    return time.toISOString();
  }
  return new Date(Date.now() - parseDuration("--since", text)).toISOString();
}

export default command({
  name: "audit",
  summary: "Show who decided what, or verify that no record was changed",
  details:
    "Labels: AUTONOMOUS, an agent acted without asking, (whitelisted) if a rule allowed it; APPROVED, a person allowed it; DENIED, it was refused; RECORDED, people or the server did it. Every record holds the hash of the one before. `--verify` reads all records and names the first bad one. Note the newest record in another place: `--noted` later proves all records up to it.",
  examples: [
    ["viv audit", `the newest ${SHOWN}, as a story`],
    ["viv audit try", "what concerns one sandbox, by name, or by id once it is gone"],
    ["viv audit --since 2h -f", "the last two hours, and on as it comes"],
    ["viv audit try --action 'network.*'", "what it asked of the network"],
    ["viv audit --verify", "is the chain whole"],
  ],
  options: {
    verify: { type: "flag", summary: "Read the whole chain; exit code 1 if it is not whole." },
    noted: { type: "text", value: "SEQUENCE:HASH", summary: "With --verify: a record as it was noted elsewhere must still be there" },
    limit: { type: "integer", value: "N", summary: `Only the last N records; ${SHOWN} if left out` },
    all: { type: "flag", short: "a", summary: "All records" },
    since: { type: "text", value: "TIME", summary: "Only what is newer: a duration such as 2h, or a time" },
    action: { type: "text", value: "ACTION", summary: "Only records of this action, such as network.request or network.*" },
    follow: { type: "flag", short: "f", summary: "Go on until ctrl-C" },
  },
  positionals: [{ name: "SANDBOX", summary: "Id or name", optional: true, completes: "sandbox" }],
  async run({ options, positionals: [sandbox], json, screen, client: connect }) {
    if (options.noted !== undefined && !options.verify) throw usageError("--noted goes with --verify.");
    const client = await connect();
    if (options.verify) return verify(client, screen, json, options.noted);
    const about = sandbox === undefined ? {} : { sandbox };
    const asked: AuditFilter = {
      ...about,
      ...(options.since === undefined ? {} : { since: sinceOf(options.since) }),
      ...(options.action === undefined ? {} : { action: options.action }),
    };
    const limit = options.all || (options.since !== undefined && options.limit === undefined) ? undefined : (options.limit ?? SHOWN);
    const records = await read(client, asked, limit);
    if (json && !options.follow) return screen.json({ records });
    const story = new AuditStory(screen, (await client.call("listSandboxes", {})).sandboxes);
    const tell = (page: readonly AuditRecord[]): void => {
      story.learn(page);
      for (const record of page)
        if (json) screen.jsonLine(record);
        else story.tell(record);
    };
    tell(records);
    const earlier = records[0]?.sequence ?? 1;
    if (options.limit === undefined && limit === records.length && earlier > 1) screen.say("Earlier ones: viv audit --all");
    if (!options.follow) return records.length === 0 ? screen.say("Nothing was decided yet.") : undefined;
    const stop = new AbortController();
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
    for (let after = records.at(-1)?.sequence ?? 0; !stop.signal.aborted;) {
      const page = (await client.call("listAudit", { ...asked, after, limit: PAGE })).records;
      tell(page);
      after = page.at(-1)?.sequence ?? after;
      if (page.length < PAGE) await delay(LOOK_AGAIN_MS, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  },
});
