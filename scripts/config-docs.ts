/** docs/CONFIG.md's tables and the JSON schemas for editors, from src/base/schema/config.ts. `node scripts/config-docs.ts` writes them; a test compares. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { ByteSize, Duration, ProjectConfig, UserConfig, WIDENING_KEYS } from "../src/base/schema/config.ts";
import { LIMITS } from "../src/base/schema/limits.ts";

const docs = join(import.meta.dirname, "..", "docs");
const GIB = 1024 ** 3;

interface Node {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Node[];
  /** Kinds of one thing, told apart by their `type`. */
  readonly oneOf?: readonly Node[];
  readonly const?: unknown;
  readonly items?: Node;
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: Node | boolean;
}

/** What a person writes, so before defaults and units are applied. */
function inputSchema(schema: z.ZodType): Node {
  const made = z.toJSONSchema(schema, {
    io: "input",
    override: ({ jsonSchema }) => {
      // zod's own bound of integers and its name for a prefix mean nothing to an editor.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.format === "starts_with") delete jsonSchema.format;
    },
  });
  return made as Node;
}

/** Values that the program chooses when a key is left out and the schema has no default. */
const CHOSEN: Readonly<Record<string, string>> = {
  "limits.cpus": String(LIMITS.defaultCpus),
  "limits.memory": `${LIMITS.defaultMemoryBytes / GIB}g`,
  "limits.disk": `${LIMITS.defaultDiskBytes / GIB}g`,
  "limits.processes": String(LIMITS.defaultProcesses),
  "services.NAME.readyTimeout": "30s",
  "services.NAME.every": "10m",
  "capture.limit": `${LIMITS.maxCapturedBytes / GIB}g`,
  idle: `${LIMITS.defaultIdleMs / 60_000}m`,
  driver: "native",
  "notifications.channels.NAME.timeout": "30s",
  "ceilings.sandboxes": String(LIMITS.maxSandboxes),
};

/** Keys that widen only when they ask for more than the default. */
const ABOVE_DEFAULT = new Set(["limits", "idle", "capture.limit", "policy"]);

const UNITS = new Map([
  [JSON.stringify(inputSchema(ByteSize).anyOf), "size"],
  [JSON.stringify(inputSchema(Duration).anyOf), "duration"],
]);

function typeName(node: Node): string {
  if (node.enum !== undefined) return node.enum.map((value) => `\`${String(value)}\``).join(", ");
  if (node.anyOf !== undefined) return UNITS.get(JSON.stringify(node.anyOf)) ?? node.anyOf.map(typeName).join(" or ");
  if (node.type === "array") return `list of ${node.items?.type ?? "value"}s`;
  if (node.properties !== undefined)
    return `\`{ ${Object.keys(node.properties)
      .map((name) => `"${name}": …`)
      .join(", ")} }\``;
  if (node.type === "object") return `map of names to ${valueName(node.additionalProperties)}s`;
  const least = node.minimum === undefined ? "" : `, at least ${node.minimum}`;
  return `${node.type ?? "anything"}${least}`;
}

function valueName(node: Node | boolean | undefined): string {
  if (typeof node !== "object") return "value";
  return node.type === "object" ? "map" : typeName(node);
}

/** One row a key; a group is described by its keys, and by itself where it has something to say. */
function rows(node: Node, prefix: string): string[] {
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const key = `${prefix}${name}`;
    const own = (type: string): string => row(key, type, child);
    if (child.properties !== undefined) return [own("group"), ...rows(child, `${key}.`)];
    const each = child.additionalProperties;
    if (typeof each === "object" && each.properties !== undefined) return [own(`map of names to ${name}`), ...rows(each, `${key}.NAME.`)];
    if (typeof each === "object" && each.oneOf !== undefined) return [own("map of names to objects"), ...kinds(each.oneOf, `${key}.NAME.`)];
    if (child.items?.properties !== undefined)
      return [own(`list of ${name.endsWith("s") ? name : "objects"}`), ...rows(child.items, `${key}[].`)];
    return [own(typeName(child))];
  });
}

/** A row a key, and the kinds that have it. */
function kinds(all: readonly Node[], prefix: string): string[] {
  const typeOf = (kind: Node): string => `\`${String(kind.properties?.["type"]?.const)}\``;
  const names = new Set(all.flatMap((kind) => Object.keys(kind.properties ?? {})));
  return [...names].map((name) => {
    const having = all.filter((kind) => kind.properties?.[name] !== undefined);
    const child = having[0]?.properties?.[name] ?? {};
    if (name === "type") return row(`${prefix}type`, all.map(typeOf).join(", "), { description: "Which way it is." });
    if (having.length === all.length) return row(`${prefix}${name}`, typeName(child), child);
    const meanings = having.map((kind) => `${typeOf(kind)}: ${kind.properties?.[name]?.description ?? ""}`);
    return row(`${prefix}${name}`, typeName(child), { ...child, description: meanings.join(" ") });
  });
}

function row(key: string, type: string, node: Node): string {
  const isEmpty = node.default !== undefined && ["[]", "{}"].includes(JSON.stringify(node.default));
  const given = node.default === undefined || isEmpty ? CHOSEN[key] : JSON.stringify(node.default);
  const trust = (WIDENING_KEYS as readonly string[]).includes(key) ? (ABOVE_DEFAULT.has(key) ? "above the default" : "yes") : "";
  return `| \`${key}\` | ${type} | ${given === undefined ? "" : `\`${given}\``} | ${trust} | ${node.description ?? ""} |`;
}

function table(schema: z.ZodType, trusts: boolean): string {
  const lines = ["| key | type | default | needs trust | meaning |", "|---|---|---|---|---|", ...rows(inputSchema(schema), "")];
  return (trusts ? lines : lines.map((line) => line.split("|").toSpliced(4, 1).join("|"))).join("\n");
}

/** The page with its tables as the schemas are now; what stands outside the marks is left alone. */
export function renderConfigPage(page: string): string {
  const parts: Readonly<Record<string, string>> = { project: table(ProjectConfig, true), user: table(UserConfig, false) };
  return page.replaceAll(/(<!-- keys: (\w+) -->\n)[^]*?(<!-- end -->)/g, (whole, start: string, name: string, end: string) => {
    const made = parts[name];
    return made === undefined ? whole : `${start}${made}\n${end}`;
  });
}

/** File of docs/ -> its text. */
export function renderConfigSchemas(): Record<string, string> {
  const text = (schema: z.ZodType, title: string): string => {
    const { $schema, ...rest } = inputSchema(schema) as Node & { $schema?: string };
    return `${JSON.stringify({ $schema, title, ...rest }, null, 2)}\n`;
  };
  return {
    "vivarium.schema.json": text(ProjectConfig, "vivarium.json"),
    "user-config.schema.json": text(UserConfig, "Vivarium's user config"),
  };
}

if (import.meta.main) {
  const page = join(docs, "CONFIG.md");
  writeFileSync(page, renderConfigPage(readFileSync(page, "utf8")));
  for (const [name, text] of Object.entries(renderConfigSchemas())) writeFileSync(join(docs, name), text);
}
