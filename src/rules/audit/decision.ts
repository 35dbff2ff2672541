/** What an agent reports of itself, as the audit trail keeps it. The channel says which agent it is, never the report. */
import type { z } from "zod";
import type { AuditEntry, Decision } from "../../base/schema/audit.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

/** Fields by which tools name what they work on, the most telling first. */
const TELLING = [
  "command",
  "cmd",
  "path",
  "file_path",
  "filePath",
  "file",
  "url",
  "host",
  "target",
  "to",
  "title",
  "pattern",
  "query",
  "name",
];

export function decisionEntry(
  { id, name, currentSnapshot }: Pick<SandboxRow, "id" | "name" | "currentSnapshot">,
  { tool, args, ...rest }: z.infer<typeof Decision>,
): AuditEntry {
  return {
    actor: { kind: "agent", name },
    action: tool,
    target: targetOf(args),
    arguments: { args: args ?? null, ...(rest as Record<string, never>) },
    label: "AUTONOMOUS",
    rule: null,
    reason: null,
    sandbox: id,
    snapshot: currentSnapshot,
  };
}

/** What it was done to, as far as the arguments say that by themselves. */
function targetOf(args: unknown): string {
  if (typeof args === "string") return args;
  if (typeof args !== "object" || args === null || Array.isArray(args)) return "";
  const given = args as Readonly<Record<string, unknown>>;
  const found = TELLING.map((key) => given[key]).find((value) => typeof value === "string" && value !== "");
  return typeof found === "string" ? found : "";
}
