import { command } from "../command.ts";
import { VivError } from "../../../base/schema/errors.ts";
import type { SandboxDetail } from "../../../base/schema/sandbox.ts";
import type { Staleness } from "../../../base/schema/files.ts";
import type { Client } from "../../client/client.ts";
import type { Screen } from "../screen.ts";
import { ago, bytes, clean, duration, plural, until } from "../text.ts";
import { paintState, stateText } from "./ls.ts";
import { startText } from "../starting-point.ts";

const SHOWN = 12;

function list(items: readonly string[]): string {
  const shown = items.slice(0, SHOWN).map(clean).join(", ");
  return items.length > SHOWN ? `${shown} and ${items.length - SHOWN} more (--json lists all)` : shown || "-";
}

/** What programs inside size themselves by. */
function seen({ limitsSeen }: SandboxDetail): string {
  const machines = (["cpus", "memory"] as const).filter((limit) => !limitsSeen.includes(limit));
  return machines.length === 0 ? "" : `; programs inside see the machine's ${machines.join(" and ")}`;
}

function use(detail: SandboxDetail): (readonly [string, string])[] {
  const { limits, use: now } = detail;
  return [
    ["cpus", `${limits.cpus}${now.cpuMs === null ? "" : `, ${duration(now.cpuMs)} used`}`],
    ["memory", `${bytes(now.memoryBytes)} of ${bytes(limits.memoryBytes)}`],
    ["disk", `${bytes(now.diskBytes)} of ${bytes(limits.diskBytes)} on ${detail.storage}`],
    ["processes", `${now.processes ?? "-"} of ${limits.processes}`],
    ["limits", detail.limitsHeld + seen(detail)],
  ];
}

function base(detail: SandboxDetail): (readonly [string, string])[] {
  const { capture } = detail;
  return [
    ["base", `${plural(capture.files, "file")}, ${bytes(capture.bytes)}, taken ${ago(detail.baseTakenAt)}`],
    ["shared live", list(capture.live.map((folder) => folder.path))],
    ["read-only", list(capture.readOnly)],
    ["torn", list(capture.torn)],
    ["hidden", list(detail.masked)],
    ["env left out", detail.environmentLeftOut.map(clean).join(", ") || "-"],
    ["untrusted", detail.untrusted.length === 0 ? "-" : `${list(detail.untrusted)} (see \`viv trust\`)`],
    ...[...detail.notes, ...capture.notes].map((note) => ["note", clean(note)] as const),
  ];
}

function staleness(found: Staleness | undefined): (readonly [string, string])[] {
  if (found === undefined) return [];
  const changes = found.changes.map((change) => `${change.path} (${change.status})`);
  return [["reality", found.stale ? `has moved since: ${list(changes)}${found.more ? ", and more" : ""}` : "is as the base took it"]];
}

/** "yolo 3 (all but privileged), worker". */
async function agentsText(server: Client, sandbox: string): Promise<string> {
  try {
    const { title, autonomy } = await server.call("inspectPolicy", { sandbox });
    return `${title}, ${autonomy.role}`;
  } catch (error) {
    if (!(error instanceof VivError) || error.code !== "config_invalid") throw error;
    return `may do nothing: ${clean(error.message)}`;
  }
}

/** "in 58 min, 60 min after its last use", "60 min after its last use; in use now: port 3000". */
function stopsText({ endedAt, expiresAt, idleMs, uses }: SandboxDetail): string {
  if (endedAt !== null) return `ended ${ago(endedAt)}`;
  if (expiresAt === null) return until(expiresAt);
  const rule = `${duration(idleMs)} after its last use`;
  return uses.length > 0 ? `${rule}; in use now: ${list(uses)}` : `${until(expiresAt)}, ${rule}`;
}

function print(screen: Screen, detail: SandboxDetail, agents: string, stale: Staleness | undefined): void {
  const rows: (readonly [string, string])[] = [
    ["name", screen.paint("bold", detail.name)],
    ["id", detail.id],
    ["state", paintState(screen, stateText(detail), detail.state) + (detail.reason === null ? "" : `: ${clean(detail.reason)}`)],
    ["project", startText(detail)],
    ...(detail.start?.from === "git" && detail.start.commit !== null ? [["commit", clean(detail.start.commit)] as const] : []),
    ...(detail.readOnly ? [["system", "read-only; the project and /tmp can be written to"] as const] : []),
    ["walls", detail.walled ? detail.driver : "none: UNWALLED"],
    ["agents", agents],
    ["created", ago(detail.createdAt)],
    ["stops", stopsText(detail)],
    ...(detail.parent === null ? [] : [["forked from", detail.parent] as const]),
    ...Object.entries(detail.labels).map(([key, value]) => ["label", `${clean(key)}=${clean(value)}`] as const),
    ...use(detail),
    ...base(detail),
    ...staleness(stale),
  ];
  screen.fields(rows.filter(([, value]) => value !== "-"));
}

export default command({
  name: "inspect",
  summary: "Show everything about a sandbox",
  examples: [
    ["viv inspect try", "state, limits and use, what the clone holds and hides"],
    ["viv inspect --stale try", "and whether the real project has moved since"],
  ],
  options: { stale: { type: "flag", summary: "Compare its base with reality, too" } },
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ options, positionals: [sandbox = ""], json, screen, client }) {
    const server = await client();
    const detail = await server.call("inspectSandbox", { sandbox });
    const stale = options.stale ? await screen.during("Comparing with reality", server.call("staleness", { sandbox })) : undefined;
    if (json) screen.json(stale === undefined ? detail : { ...detail, staleness: stale });
    else print(screen, detail, await agentsText(server, sandbox), stale);
  },
});
