/** What a record keeps of what was done: no secrets, and no more than it takes to know it again. */
import type { AuditEntry } from "../../base/schema/audit.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { redact, redactValue } from "../../base/schema/secret-patterns.ts";

const TEXT = 4096;
/** Looked through for secrets before it is cut to `TEXT`. */
const LOOKED_AT = 4 * TEXT;

export function cleaned(entry: AuditEntry): AuditEntry {
  return {
    ...entry,
    action: entry.action.slice(0, 128),
    target: cleanText(entry.target),
    arguments: bounded(redactValue(entry.arguments) as AuditEntry["arguments"]),
    // An `always` rule is the whole command.
    rule: entry.rule === null ? null : cleanText(entry.rule),
    reason: entry.reason === null ? null : cleanText(entry.reason),
  };
}

/** A word that the first cut goes through is left out: half a secret does not look like one. */
function cleanText(text: string): string {
  const looked = text.length <= LOOKED_AT ? text : text.slice(0, LOOKED_AT).replace(/\S+$/, "");
  return redact(looked).slice(0, TEXT);
}

/** Arguments are details: what is too long is told by its beginning. */
function bounded(value: AuditEntry["arguments"]): AuditEntry["arguments"] {
  const text = JSON.stringify(value) ?? "null";
  return text.length <= LIMITS.auditArgumentCharacters ? value : { cut: text.slice(0, LIMITS.auditArgumentCharacters) };
}
