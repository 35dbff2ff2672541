/**
 * Speed, as ratios within one run: `npm run bench`. `--json` prints one object, `--only key,key` runs some rows,
 * `--quick` takes fewer rounds, `--strict` ends with 1 if a limit is missed.
 */
import { parseArgs } from "node:util";
import { agentGroup } from "./agents.ts";
import { agentEventsGroup } from "./agent-events.ts";
import { auditGroup } from "./audit.ts";
import { automationsGroup } from "./automations.ts";
import { changesGroup } from "./changes.ts";
import { cloneGroup } from "./clone.ts";
import { conversationGroup } from "./conversations.ts";
import { dashboardGroup } from "./dashboard.ts";
import { commandLineGroup } from "./command-line.ts";
import { createGroup } from "./create.ts";
import { mcpGroup } from "./mcp.ts";
import { insideGroup } from "./inside.ts";
import { ioGroup } from "./io.ts";
import { jobsGroup } from "./jobs.ts";
import { leaksGroup } from "./leaks.ts";
import { manyGroup } from "./many.ts";
import { toJson, toTable, verdictOf } from "./report.ts";
import { isKey, KEYS, type Group, type Key, type Outcome, type Settings } from "./rows.ts";
import { policyGroup } from "./policy.ts";
import { portsGroup } from "./ports.ts";
import { proxyGroup } from "./proxy.ts";
import { sdkGroup } from "./sdk.ts";
import { snapshotGroup } from "./snapshots.ts";
import { stateGroup } from "./states.ts";
import { thousandGroup } from "./thousand.ts";
import { tryGroup } from "./try.ts";

const GROUPS: readonly Group[] = [
  createGroup,
  commandLineGroup,
  cloneGroup,
  snapshotGroup,
  stateGroup,
  ioGroup,
  manyGroup,
  thousandGroup,
  tryGroup,
  changesGroup,
  proxyGroup,
  portsGroup,
  policyGroup,
  auditGroup,
  conversationGroup,
  agentGroup,
  agentEventsGroup,
  sdkGroup,
  jobsGroup,
  automationsGroup,
  mcpGroup,
  dashboardGroup,
  insideGroup,
  leaksGroup,
];
const WRONG_USE = 2;

interface Arguments {
  readonly json: boolean;
  readonly quick: boolean;
  readonly strict: boolean;
  readonly wanted: ReadonlySet<Key>;
}

function parseArguments(args: readonly string[]): Arguments {
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({ args: [...args], options: { json: flag, quick: flag, strict: flag, only: { type: "string" } } });
  const asked = values.only?.split(",").map((name) => name.trim()) ?? KEYS;
  const wanted = new Set<Key>();
  for (const name of asked) {
    if (!isKey(name)) throw new Error(`There is no row ${JSON.stringify(name)}: ${KEYS.join(", ")} exist.`);
    wanted.add(name);
  }
  return { json: values.json, quick: values.quick, strict: values.strict, wanted };
}

/** Rows of a group that failed are broken rows; the others go on. */
async function measure(group: Group, settings: Settings): Promise<[Key, Outcome][]> {
  const wanted = new Set(group.keys.filter((key) => settings.wanted.has(key)));
  if (wanted.size === 0) return [];
  try {
    const outcomes = await group.measure({ ...settings, wanted });
    return [...wanted].map((key) => [key, outcomes[key] ?? { error: "the row was not measured" }]);
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    settings.progress(text);
    return [...wanted].map((key) => [key, { error: text }]);
  }
}

async function main({ json, quick, strict, wanted }: Arguments): Promise<number> {
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1000;
  const progress = (text: string): void => void process.stderr.write(`${seconds().toFixed(0).padStart(5)} s  ${text}\n`);
  const results = new Map<Key, Outcome>();
  for (const group of GROUPS) {
    for (const [key, outcome] of await measure(group, { quick, wanted, progress })) results.set(key, outcome);
  }
  process.stdout.write(`${json ? toJson(results, { quick, seconds: seconds() }) : toTable(results)}\n`);
  const verdicts = [...results].map(([key, outcome]) => verdictOf(key, outcome));
  return verdicts.includes("BROKEN") || (strict && verdicts.includes("MISSED")) ? 1 : 0;
}

function argumentsOrExit(): Arguments {
  try {
    return parseArguments(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(WRONG_USE);
  }
}

process.exitCode = await main(argumentsOrExit());
