/** Reads vivarium.json of a project and the user's own config; decides what of it takes effect. */
import { createHash } from "node:crypto";
import { constants, closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findNodeAtLocation, parse, parseTree, printParseErrorCode, type ParseError } from "jsonc-parser";
import type { z } from "zod";
import { untrustedPolicy, widenedBy } from "../policy/widening.ts";
import { problemIn } from "./config-errors.ts";
import { hostLines, type HostLines } from "./host-lines.ts";
import { ProjectConfig, UserConfig, WIDENING_KEYS } from "../schema/config.ts";
import { VivError } from "../schema/errors.ts";
import { LIMITS } from "../schema/limits.ts";
import { IS_WALLED } from "../schema/sandbox.ts";

export const CONFIG_NAME = "vivarium.json";
const MAX_CONFIG_BYTES = 1024 ** 2;

export interface LoadedConfig {
  /** What takes effect: without trust, only what tightens. */
  readonly config: ProjectConfig;
  /** The file, or null when the project has none. */
  readonly file: string | null;
  /** Hash of its content, and of the files that its lines run on this machine. */
  readonly hash: string | null;
  /** Files of the project that its lines name or run on this machine. */
  readonly runs: HostLines;
  /** What its content widens, whether trusted or not. */
  readonly widens: { key: string; value: string }[];
  readonly trusted: boolean;
  /** Keys that wait for trust. */
  readonly untrusted: readonly string[];
}

/** Where a project has no config. */
export const NO_CONFIG: LoadedConfig = {
  config: ProjectConfig.parse({}),
  file: null,
  hash: null,
  runs: { hash: null, files: [], names: new Set() },
  widens: [],
  trusted: true,
  untrusted: [],
};

export function loadProjectConfig(project: string, trustedHash: string | null): LoadedConfig {
  const file = join(project, CONFIG_NAME);
  const text = readConfigText(file);
  if (text === undefined) return NO_CONFIG;
  const config = parseConfig(file, text, ProjectConfig);
  const runs = hostLines(project, config);
  const own = createHash("sha256").update(text).digest("hex");
  const hash = runs.hash === null ? own : `${own}.${runs.hash}`;
  const widens = WIDENING_KEYS.flatMap((key) => {
    const value = widening(config, key);
    return value === undefined ? [] : [{ key, value: JSON.stringify(value) }];
  });
  const isSame = own === trustedHash?.split(".")[0];
  const trusted = widens.length === 0 || hash === trustedHash;
  const effective = trusted ? config : isSame ? withoutTakes(config) : tightened(config);
  // Rules that no person trusted make verdicts stricter and never milder, whatever the level.
  const policy = config.policy === undefined || isSame ? {} : { policy: untrustedPolicy(config.policy) };
  const keys = widens.map(({ key }) => key);
  const untrusted = trusted ? [] : isSame ? keys.filter((key) => key === "services" || key === "stages" || key === "automations") : keys;
  return { config: { ...effective, ...policy }, file, hash, runs, widens, trusted, untrusted };
}

/** Stages stay, since they may ask for approvals; none of their lines runs until what these run is trusted. */
function withoutTakes(config: ProjectConfig): ProjectConfig {
  const services = Object.entries(config.services).filter(([, { take }]) => take === undefined);
  return { ...config, services: Object.fromEntries(services) };
}

export function loadUserConfig(file: string): UserConfig {
  const text = readConfigText(file);
  return text === undefined ? UserConfig.parse({}) : parseConfig(file, text, UserConfig);
}

/** The value of a widening key if the config uses it. */
function widening(config: ProjectConfig, key: (typeof WIDENING_KEYS)[number]): unknown {
  const used = <T extends object>(value: T): T | undefined => (Object.keys(value).length > 0 ? value : undefined);
  switch (key) {
    case "expose":
      return used(config.expose);
    case "env.pass":
      return used(config.env.pass);
    case "env.set":
      return used(config.env.set);
    case "services":
      return used(config.services);
    case "stages":
      return config.stages;
    case "automations":
      return used(config.automations);
    case "network":
      return opensNetwork(config.network) ? config.network : undefined;
    case "policy":
      return config.policy === undefined ? undefined : used(widenedBy(config.policy));
    case "sudo":
      return config.sudo ? true : undefined;
    case "driver":
      return config.driver === undefined || IS_WALLED[config.driver] ? undefined : config.driver;
    case "limits":
      return used(aboveDefaults(config.limits));
    case "idle":
      return config.idle !== undefined && !isWithinIdle(config.idle) ? config.idle : undefined;
    case "capture.limit":
      return (config.capture.limit ?? 0) > LIMITS.maxCapturedBytes ? config.capture.limit : undefined;
  }
}

const DEFAULTS: Readonly<Record<keyof ProjectConfig["limits"], number>> = {
  cpus: LIMITS.defaultCpus,
  memory: LIMITS.defaultMemoryBytes,
  disk: LIMITS.defaultDiskBytes,
  processes: LIMITS.defaultProcesses,
};

function aboveDefaults(limits: ProjectConfig["limits"]): ProjectConfig["limits"] {
  return Object.fromEntries(Object.entries(limits).filter(([key, value]) => (value ?? 0) > DEFAULTS[key as keyof typeof DEFAULTS]));
}

/** 0 means that a sandbox is never stopped. */
function isWithinIdle(idle: number): boolean {
  return idle > 0 && idle <= LIMITS.defaultIdleMs;
}

/** The network rules that may be wider than the user's own, which are not known here. */
function opensNetwork({ mode, allow, ports, tightenOnly }: ProjectConfig["network"]): boolean {
  return tightenOnly !== true && ((mode !== undefined && mode !== "off") || allow.length > 0 || ports !== undefined);
}

function tightened(config: ProjectConfig): ProjectConfig {
  const { driver, idle, stages: _, ...rest } = config;
  const tooMuch = aboveDefaults(config.limits);
  const { limit, ...capture } = config.capture;
  return {
    ...rest,
    ...(driver !== undefined && IS_WALLED[driver] ? { driver } : {}),
    ...(idle !== undefined && isWithinIdle(idle) ? { idle } : {}),
    limits: Object.fromEntries(Object.entries(config.limits).filter(([key]) => !(key in tooMuch))),
    capture: { ...capture, ...(limit !== undefined && limit <= LIMITS.maxCapturedBytes ? { limit } : {}) },
    expose: [],
    env: { pass: [], set: {}, drop: config.env.drop },
    services: {},
    automations: {},
    network: { ...config.network, tightenOnly: true },
    sudo: false,
  };
}

/** The file's text; undefined if there is none. A link is not followed: it could point anywhere. */
export function readConfigText(file: string): string | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new VivError("config_invalid", `${file} can't be read: ${code ?? String(error)}.`, { cause: error });
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile() || stats.size > MAX_CONFIG_BYTES)
      throw new VivError("config_invalid", `${file} is not a regular file of at most 1 MiB.`);
    return readFileSync(descriptor, "utf8");
  } finally {
    closeSync(descriptor);
  }
}

/** JSON with comments, as its schema wants it; an error names the line. */
export function parseConfig<Schema extends z.ZodType>(file: string, text: string, schema: Schema): z.output<Schema> {
  const value = parseJsonc(file, text);
  const result = schema.safeParse(value ?? {});
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const { path, what } = issue === undefined ? { path: [], what: "not valid" } : problemIn(schema, issue, value ?? {});
  throw new VivError("config_invalid", `${file}:${lineOf(text, path)}: ${path.map(String).join(".") || "the whole"}: ${what}.`);
}

/** JSON with comments; an error names the line. */
export function parseJsonc(file: string, text: string): unknown {
  const errors: ParseError[] = [];
  const value: unknown = parse(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first !== undefined)
    throw new VivError("config_invalid", `${file}:${lineAt(text, first.offset)}: ${printParseErrorCode(first.error)}.`);
  return value;
}

/** The line of the value at a path, or of what it would lie in. */
function lineOf(text: string, path: readonly PropertyKey[]): number {
  const root = parseTree(text);
  if (root === undefined) return 1;
  for (let length = path.length; length > 0; length -= 1) {
    const node = findNodeAtLocation(
      root,
      path.slice(0, length).map((part) => (typeof part === "number" ? part : String(part))),
    );
    if (node !== undefined) return lineAt(text, (node.parent?.type === "property" ? node.parent : node).offset);
  }
  return 1;
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}
