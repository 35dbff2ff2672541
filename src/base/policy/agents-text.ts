/** The decision framework that an agent reads, from the very policy that judges it. */
import type { PolicyRule, Verdict } from "../schema/policy.ts";
import { redact } from "../schema/secret-patterns.ts";
import type { EffectivePolicy } from "./policy.ts";

const HEADINGS: readonly (readonly [Verdict, string])[] = [
  ["allow", "Autonomous actions (pre-approved)"],
  ["ask", "Actions requiring approval"],
  ["deny", "Actions that are denied"],
];
const WORDS: Readonly<Record<string, string>> = {
  bash: "Run",
  edit: "Edit",
  write: "Write",
  path: "Touch",
  delete: "Delete",
  host: "Call",
  package: "Install the package",
  external_directory: "Write outside of the project",
  promotion: "Promote to",
};
const LISTED = 40;

/** `steps` is what the run of the agent may take, where that is not what its role says. */
export function agentText(policy: EffectivePolicy, steps: number | null = policy.roleData.maxSteps): string {
  const { title, role, roleData, production, ceiling } = policy;
  const lines = [
    "## Self-Decision Framework",
    "",
    `You work as ${role} (${roleData.description.toLowerCase()}) at ${title}. These rules are enforced: an action that they deny is refused, whatever you try.`,
    ...(steps === null ? [] : [`You have ${steps} steps: each tool call is one, and one more ends your run.`]),
    "",
    "Before taking action, ask:",
    "1. Is it listed as autonomous? Act.",
    "2. Is it listed as requiring approval, or not listed at all? Ask for approval, and go on with something else meanwhile.",
    "3. Is it denied? Do not try other ways to the same end; say what you need and why.",
    "",
    "The most specific rule counts. A command made of several is judged by its strictest part, so keep commands simple.",
    "",
  ];
  for (const [verdict, heading] of HEADINGS) lines.push(`## ${heading}`, ...listed(policy, verdict), "");
  const stricter = HEADINGS.slice(1).flatMap(([verdict, heading]) => {
    const own = Object.entries(policy.stricter).flatMap(([tool, rule]) => ruleLines(tool, rule, verdict));
    return own.length === 0 ? [] : [`### ${heading}`, ...own];
  });
  if (stricter.length > 0)
    lines.push("## Stricter rules of this project", "Of these and the ones above the stricter counts.", ...stricter, "");
  if (policy.always.size > 0)
    lines.push("## Allowed always by a person", ...[...policy.always.values()].map((rule) => `- \`${redact(rule)}\``), "");
  const gib = Math.round((ceiling.memoryBytes / 1024 ** 3) * 10) / 10;
  lines.push("## Limits", `- You may request up to ${ceiling.cpus} CPU and ${gib} GiB of memory; more needs approval.`);
  if (production.length > 0) lines.push(`- Production is never called: ${production.map(({ source }) => `\`${source}\``).join(", ")}.`);
  lines.push("- Promotion into reality passes its gates at every level.", "");
  return lines.join("\n");
}

function listed({ rules, roleData: { tools, others } }: EffectivePolicy, verdict: Verdict): string[] {
  const lines: string[] = [];
  const missing = Object.keys(tools).filter((tool) => tools[tool] === false);
  for (const [tool, rule] of Object.entries(rules)) {
    const isTool = !(tool in WORDS) || ["bash", "edit", "write"].includes(tool);
    const has = tool === "*" || !isTool || (Object.hasOwn(tools, tool) ? tools[tool] === true : others);
    if (has && (tool !== "*" || others)) lines.push(...ruleLines(tool, rule, verdict));
  }
  if (verdict === "deny" && missing.length > 0) lines.push(`- Use ${missing.map((tool) => `\`${tool}\``).join(", ")}`);
  if (verdict === "deny" && !others) lines.push("- Use tools that are not listed above");
  return lines.length > 0 ? lines : ["- None"];
}

function ruleLines(tool: string, rule: PolicyRule, verdict: Verdict): string[] {
  const word = WORDS[tool];
  if (typeof rule === "string") {
    if (rule !== verdict) return [];
    return [
      tool === "*"
        ? "- Every other tool"
        : word === undefined
          ? `- Use \`${tool}\``
          : tool === "bash"
            ? "- Run any command"
            : `- ${word}${word.includes(" ") ? "" : " files"}`,
    ];
  }
  const patterns = Object.entries(rule).filter(([, each]) => each === verdict);
  const named = patterns
    .filter(([source]) => source !== "*")
    .map(([source]) => `\`${source.startsWith("@") ? `${source.slice(1)} addresses` : source}\``);
  const shown = named.length > LISTED ? [...named.slice(0, LISTED), `and ${named.length - LISTED} more`] : named;
  const rest = patterns.some(([source]) => source === "*") ? [`- ${word ?? tool}: everything else`] : [];
  return [...(shown.length > 0 ? [`- ${word ?? tool}: ${shown.join(", ")}`] : []), ...rest];
}
