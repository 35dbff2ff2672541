/**
 * What a person allowed always: that very action and nothing else, whatever `*` may mean elsewhere. It answers a question ahead;
 * a denial stays one.
 */
import type { PolicyAction, PolicyPart } from "../schema/policy.ts";
import { shellLine } from "../schema/shell-words.ts";
import { type Part, partsOf, partsOfWords } from "./parts.ts";
import { UNKNOWN } from "./pattern.ts";
import { isUnknown } from "./shell/script.ts";

/** A person does not read a longer action before allowing it always. */
const MOST_CHARACTERS = 1_024;

/** The same text for the same action, however it is written. */
export function canonicalAction(action: PolicyAction): string {
  switch (action.kind) {
    case "command":
      return JSON.stringify(["command", action.command]);
    case "tool": {
      const tool = action.tool.toLowerCase();
      const isCommand = tool === "bash" && action.argument !== undefined;
      return JSON.stringify(isCommand ? ["command", action.argument] : ["tool", tool, action.argument ?? null]);
    }
    case "path":
      return JSON.stringify(["path", action.access, action.path]);
    case "host":
      return JSON.stringify(["host", hostOf(action.host), action.port ?? null]);
    case "resources":
      return JSON.stringify(["resources", action.cpus ?? null, action.memoryBytes ?? null]);
    case "promotion":
      return JSON.stringify(["promotion", action.stage]);
  }
}

/** The action as a person reads it. */
export function shownAction(action: PolicyAction): string {
  switch (action.kind) {
    case "command":
      return typeof action.command === "string" ? action.command : shellLine(action.command);
    case "tool":
      return action.argument === undefined ? action.tool : isShell(action) ? action.argument : `${action.tool} ${action.argument}`;
    case "path":
      return `${action.access} ${action.path}`;
    case "host":
      return action.port === undefined ? action.host : `${action.host}:${action.port}`;
    case "resources":
      return `${action.cpus ?? "the same"} CPUs, ${action.memoryBytes ?? "the same"} bytes of memory in all`;
    case "promotion":
      return `promotion to ${action.stage}`;
  }
}

/** The rule that `always` would add, or null where none is narrow: what it does must be known from its text. */
export function alwaysRule(action: PolicyAction): string | null {
  const rule = ruleOf(action);
  return rule === null || rule.length > MOST_CHARACTERS || rule.includes("*") ? null : rule;
}

function ruleOf(action: PolicyAction): string | null {
  switch (action.kind) {
    case "command":
      return isKnown(action.command) ? `bash: ${shownAction(action)}` : null;
    case "tool":
      if (action.argument === undefined) return null;
      if (isShell(action)) return isKnown(action.argument) ? `bash: ${action.argument}` : null;
      return `${action.tool.toLowerCase()}: ${action.argument}`;
    case "path":
      return `${action.access}: ${action.path}`;
    case "host":
      return `host: ${hostOf(action.host)}${action.port === undefined ? "" : `:${action.port}`}`;
    // A person is asked about these each time.
    case "resources":
    case "promotion":
      return null;
  }
}

function isShell({ tool }: { readonly tool: string }): boolean {
  return tool.toLowerCase() === "bash";
}

function hostOf(host: string): string {
  return host.toLowerCase().replace(/\.$/, "");
}

/** Whether all of it was understood, and nothing of it is known only when it runs. */
function isKnown(command: string | readonly string[]): boolean {
  const parts = typeof command === "string" ? partsOf(command) : partsOfWords(command);
  return parts.length > 0 && parts.every(isKnownPart);
}

function isKnownPart(part: Part): boolean {
  switch (part.kind) {
    case "problem":
      return false;
    case "command":
      return part.opaque?.later !== true && !part.text.includes(UNKNOWN) && part.effects.every(isKnownPart);
    case "path":
      return !isUnknown(part.path) && !part.path.glob;
    case "host":
      return !part.host.includes(UNKNOWN);
    case "package":
      return !part.name.includes(UNKNOWN);
  }
}

/** Rules by the action they are for. */
export type Always = ReadonlyMap<string, string>;

export function alwaysOf(actions: readonly PolicyAction[]): Always {
  return new Map(
    actions.flatMap((action) => {
      const rule = alwaysRule(action);
      return rule === null ? [] : [[canonicalAction(action), rule] as const];
    }),
  );
}

/** Parts with the questions answered that a person answered for good. */
export function allowAlways(always: Always, action: PolicyAction, parts: PolicyPart[]): PolicyPart[] {
  const rule = always.size === 0 ? undefined : always.get(canonicalAction(action));
  if (rule === undefined) return parts;
  const reason = "A person allowed this very action always.";
  return parts.map((part) => (part.verdict === "ask" ? { ...part, verdict: "allow", rule: `always: ${rule}`, reason } : part));
}
