/**
 * What an agent may do: (rules, level, role, action) -> allow, ask or deny, with the rule that decided and a sentence.
 * The policy only judges. An agent that goes around it is still held by the walls.
 */
import type {
  AutonomyLevel,
  PolicyAction,
  PolicyConfig,
  PolicyDecision,
  PolicyPart,
  PolicyRule,
  Role,
  Verdict,
  YoloLevel,
} from "../schema/policy.ts";
import type { ProjectConfig } from "../schema/config.ts";
import { canonicalHost } from "../schema/network.ts";
import { POLICY_SETTINGS } from "../schema/policy.ts";
import { VivError } from "../schema/errors.ts";
import { type Always, alwaysOf, allowAlways } from "./always.ts";
import { runTimeCeiling, type Ceiling, type GivenLimits } from "./ceiling.ts";
import { Layer, worst, type Judgement } from "./layer.ts";
import { LEVELS, ROLES, YOLO, type RoleData, type Rules } from "./levels.ts";
import { type Part, partsOf, partsOfWords } from "./parts.ts";
import { compile, mayMatch, UNKNOWN, type Pattern } from "./pattern.ts";
import { isStricter } from "./rules.ts";
import { plainWord } from "./shell/script.ts";

export interface PolicyChoice {
  /** The project's config, of which rules, limits and hosts of production count. */
  readonly config?:
    | {
        readonly policy?: PolicyConfig | undefined;
        readonly limits?: ProjectConfig["limits"];
        readonly network?: { readonly production: readonly string[] };
      }
    | undefined;
  /** What a person chose for the sandbox. */
  readonly limits?: GivenLimits | undefined;
  readonly level?: AutonomyLevel | undefined;
  readonly yolo?: YoloLevel | undefined;
  readonly role?: Role | undefined;
  /** Folder of the project, by which paths are inside or outside. */
  readonly project?: string | undefined;
  /** What people allowed always. */
  readonly always?: readonly PolicyAction[] | undefined;
}

export interface EffectivePolicy {
  /** "level 1, guided". */
  readonly title: string;
  readonly level: AutonomyLevel | null;
  readonly yolo: YoloLevel | null;
  readonly role: Role;
  readonly roleData: RoleData;
  readonly project: string | undefined;
  readonly production: readonly Pattern[];
  /** What a sandbox gets at run time without a person. */
  readonly ceiling: Ceiling;
  /** Rules of the level with what replaces them, for showing. */
  readonly rules: Rules;
  /** Rules of the project that only make a verdict stricter, for showing. */
  readonly stricter: Rules;
  readonly always: Always;
  /** Each layer judges an action; the strictest judgement counts. */
  readonly layers: readonly Layer[];
}

const DEFAULT_LEVEL: AutonomyLevel = 1;
const PROJECT = "vivarium.json";

export function effectivePolicy(choice: PolicyChoice): EffectivePolicy {
  const { config: given = {}, level, yolo, role = "worker", project, always = [] } = choice;
  if (level !== undefined && yolo !== undefined) throw new VivError("invalid_input", "level and yolo exclude each other.");
  const config = given.policy ?? {};
  const chosenYolo = yolo ?? (level === undefined ? config.yolo : undefined);
  const chosenLevel = chosenYolo === undefined ? (level ?? config.level ?? DEFAULT_LEVEL) : undefined;
  const data = chosenYolo === undefined ? LEVELS[chosenLevel ?? DEFAULT_LEVEL] : YOLO[chosenYolo];
  const origin = data.title.charAt(0).toUpperCase() + data.title.slice(1);
  const base = { rules: data.rules, origin };
  const own = { rules: rulesOf(config), origin: PROJECT };
  const tightens = config.tightenOnly === true;
  return {
    title: data.title,
    level: chosenLevel ?? null,
    yolo: chosenYolo ?? null,
    role,
    roleData: roleData(role, config),
    project,
    production: (given.network?.production ?? []).map((pattern) => compile(canonicalHost(pattern.toLowerCase()))),
    ceiling: runTimeCeiling(given, choice.limits),
    rules: tightens ? data.rules : mergedRules(data.rules, own.rules),
    stricter: tightens ? own.rules : {},
    always: alwaysOf(always),
    layers: tightens ? [new Layer([base]), new Layer([own])] : [new Layer([base, own])],
  };
}

/** Every key of the config that is a tool. */
export function rulesOf(config: PolicyConfig): Record<string, PolicyRule> {
  const settings = new Set<string>(POLICY_SETTINGS);
  return Object.fromEntries(Object.entries(config).filter(([key]) => !settings.has(key))) as Record<string, PolicyRule>;
}

function mergedRules(base: Rules, own: Rules): Rules {
  const merged: Record<string, PolicyRule> = { ...base };
  for (const [tool, rule] of Object.entries(own)) {
    const below = merged[tool];
    merged[tool] = typeof rule === "string" ? rule : { ...(typeof below === "string" ? { "*": below } : below), ...rule };
  }
  return merged;
}

/** A project can take tools away from a role; it gives back what the default takes away only once it is trusted. */
function roleData(role: Role, config: PolicyConfig): RoleData {
  const base = ROLES[role];
  const own = config.roles?.[role];
  const taken = Object.entries(own?.tools ?? {}).filter(
    ([tool, has]) => !has || (base.tools[tool] ?? base.others) || config.tightenOnly !== true,
  );
  return {
    ...base,
    maxSteps:
      own?.maxSteps === undefined
        ? base.maxSteps
        : config.tightenOnly === true
          ? Math.min(own.maxSteps, base.maxSteps ?? own.maxSteps)
          : own.maxSteps,
    tools: { ...base.tools, ...Object.fromEntries(taken) },
  };
}

export function decide(policy: EffectivePolicy, action: PolicyAction): PolicyDecision {
  const parts = allowAlways(policy.always, action, judged(policy, action));
  const first = parts[0] ?? { verdict: "allow" as Verdict, rule: "nothing", reason: "It runs nothing." };
  const deciding = parts.reduce<Judgement>((found, part) => (isStricter(part.verdict, found.verdict) ? part : found), first);
  const { verdict, rule, reason } = deciding;
  return { verdict, rule, reason, parts };
}

function judged(policy: EffectivePolicy, action: PolicyAction): PolicyPart[] {
  switch (action.kind) {
    case "command":
      return judgeCommand(policy, action.command);
    case "tool":
      return judgeTool(policy, action.tool, action.argument);
    case "path":
      return [judgePath(policy, action.path, action.access)];
    case "host":
      return [shownAs(action.host, judgeHost(policy, action.host) ?? unruled(`host ${action.host}`))];
    case "resources":
      return [judgeResources(policy, action.cpus ?? 0, action.memoryBytes ?? 0)];
    case "promotion": {
      const found = lacking(policy, ["promotion"]) ?? each(policy, (layer) => layer.tool("promotion", action.stage));
      return [shownAs(`promotion to ${action.stage}`, found ?? unruled("promotion"))];
    }
  }
}

function shownAs(command: string, { verdict, rule, reason }: Judgement): PolicyPart {
  return { command, verdict, rule, reason };
}

/** No rule says anything: a person is asked. */
function unruled(what: string): Judgement {
  return { verdict: "ask", rule: "none", reason: `A person is asked, since no rule says anything about ${what}.` };
}

function each(policy: EffectivePolicy, judge: (layer: Layer) => Judgement | undefined): Judgement | undefined {
  return worst(policy.layers.map(judge));
}

/** What a role does not have. */
function lacking({ role, roleData: { tools, others } }: EffectivePolicy, names: readonly string[]): Judgement | undefined {
  const missing = names.find((name) => !(Object.hasOwn(tools, name) ? tools[name] : others));
  return missing === undefined ? undefined : { verdict: "deny", rule: `role ${role}`, reason: `A ${role} has no ${missing}.` };
}

function judgeCommand(policy: EffectivePolicy, command: string | readonly string[]): PolicyPart[] {
  const parts = typeof command === "string" ? partsOf(command) : partsOfWords(command);
  const without = lacking(policy, ["bash"]);
  if (without !== undefined) return [shownAs(typeof command === "string" ? command : command.join(" "), without)];
  const budget = { effects: MOST_EFFECTS };
  const found = parts.flatMap((part) => {
    const judgement = judgePart(policy, part, budget);
    // A redirection into a file that may be written is part of its command.
    const says = judgement !== undefined && (part.kind === "command" || judgement.verdict !== "allow");
    return says ? [shownAs(part.shown, judgement)] : [];
  });
  const isSilent = found.length === 0 && parts.some(({ kind }) => kind === "command");
  return isSilent ? [shownAs(parts[0]?.shown ?? "", unruled("commands"))] : found;
}

/** Files, hosts and packages of one command line that are looked at: judging all that fit into 64 KiB takes seconds. */
const MOST_EFFECTS = 3_000;
const UNSEEN: Judgement = { verdict: "ask", rule: "none", reason: "A person is asked, since it names more than is looked at." };

/** A command counts with what it does to files, hosts and packages. */
function judgePart(policy: EffectivePolicy, part: Part, budget: { effects: number }): Judgement | undefined {
  const own = each(policy, (layer) => layer.judge(part, policy.project));
  const reached = part.kind === "host" ? production(policy, part.host) : undefined;
  const all = part.kind === "command" ? part.effects : [];
  const seen = all.slice(0, budget.effects);
  budget.effects -= seen.length;
  const effects = seen.map((effect) => judgePart(policy, effect, budget));
  const strict = effects.filter((effect) => effect !== undefined && effect.verdict !== "allow");
  return worst([own, reached, ...strict, ...(seen.length < all.length ? [UNSEEN] : [])]);
}

function judgeResources(policy: EffectivePolicy, cpus: number, memoryBytes: number): PolicyPart {
  const { ceiling } = policy;
  const gib = (size: number): string => `${Math.round((size / 1024 ** 3) * 100) / 100} GiB`;
  const shown = `${cpus} CPU, ${gib(memoryBytes)}`;
  const without = lacking(policy, ["request_resources"]) ?? each(policy, (layer) => layer.tool("request_resources", ""));
  if (without !== undefined && without.verdict !== "allow") return shownAs(shown, without);
  const fits = cpus <= ceiling.cpus && memoryBytes <= ceiling.memoryBytes;
  const limit = `${ceiling.cpus} CPU and ${gib(ceiling.memoryBytes)}`;
  return fits
    ? { command: shown, verdict: "allow", rule: "ceiling", reason: `It is within the ceiling of ${limit}.` }
    : { command: shown, verdict: "ask", rule: "ceiling", reason: `A person is asked, since it is over the ceiling of ${limit}.` };
}

const READING = new Set(["read", "grep", "glob", "list", "ls"]);
const WRITING = new Set(["edit", "write", "multiedit", "patch", "apply_patch", "notebookedit"]);
const CALLING = new Set(["webfetch", "fetch"]);

function judgeTool(policy: EffectivePolicy, given: string, argument: string | undefined): PolicyPart[] {
  const tool = given.toLowerCase();
  const shown = argument === undefined ? tool : `${tool} ${argument}`;
  const without = lacking(policy, [tool]);
  if (without !== undefined) return [shownAs(shown, without)];
  if (tool === "bash" && argument !== undefined) return judgeCommand(policy, argument);
  const own = each(policy, (layer) => layer.tool(tool, argument ?? "")) ?? unruled(`the tool ${tool}`);
  if (argument === undefined) return [shownAs(shown, own)];
  const also: (Judgement | undefined)[] = [];
  if (WRITING.has(tool)) also.push(pathJudgement(policy, argument, "write"));
  if (READING.has(tool)) also.push(pathJudgement(policy, argument, "read"));
  if (CALLING.has(tool)) also.push(urlJudgement(policy, argument));
  // Rules of edit and write are about paths, which are judged as such; other writing tools may have rules of their own.
  const byPath = WRITING.has(tool) && also[0] !== undefined;
  const hasRules = tool !== "edit" && tool !== "write" && policy.layers.some((layer) => layer.has(tool));
  const known = byPath && !hasRules ? also : [own, ...also];
  return [shownAs(shown, worst(known) ?? own)];
}

function pathJudgement(policy: EffectivePolicy, path: string, access: "read" | "write" | "delete"): Judgement | undefined {
  const word = { ...plainWord(path), tilde: path === "~" || path.startsWith("~/") };
  const part = { kind: "path", shown: path, path: word, access, from: [] } as const;
  return each(policy, (layer) => layer.path(part, policy.project));
}

function judgePath(policy: EffectivePolicy, path: string, access: "read" | "write" | "delete"): PolicyPart {
  const shown = `${access} ${path}`;
  const without = access === "read" ? lacking(policy, ["read"]) : lacking(policy, ["edit"]);
  if (without !== undefined) return shownAs(shown, without);
  const found = pathJudgement(policy, path, access);
  return shownAs(shown, found ?? { verdict: "allow", rule: "none", reason: "No rule is against it." });
}

function urlJudgement(policy: EffectivePolicy, address: string): Judgement | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined) return undefined;
  if (url.protocol !== "http:" && url.protocol !== "https:")
    return { verdict: "deny", rule: "addresses", reason: "Only http and https are called." };
  return judgeHost(policy, url.hostname.replace(/^\[|\]$/g, ""));
}

function judgeHost(policy: EffectivePolicy, host: string): Judgement | undefined {
  return worst([production(policy, host), each(policy, (layer) => layer.host({ host }))]);
}

/** No level opens production. */
function production({ production: patterns }: EffectivePolicy, given: string): Judgement | undefined {
  const host = given.toLowerCase().replace(/\.$/, "");
  const found = patterns.find((pattern) => mayMatch(pattern, host));
  if (found === undefined) return undefined;
  const verdict = host.includes(UNKNOWN) ? "ask" : "deny";
  return { verdict, rule: `production: ${found.source}`, reason: `\`${found.source}\` is production, which no level opens.` };
}
