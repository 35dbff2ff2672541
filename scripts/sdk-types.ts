/** The plain types of the SDK, src/interfaces/sdk/types/, and their pages in docs/sdk/, from the contracts. `node scripts/sdk-types.ts` writes them; a test compares. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openApiDocument, type JsonSchema, type OpenApiOperation } from "../src/interfaces/api/openapi.ts";
import { ERRORS } from "../src/base/schema/errors.ts";
import { ROUTES, TAGS } from "../src/base/schema/routes.ts";
import { renderDataPages } from "./sdk-docs.ts";

const FOLDER = join(import.meta.dirname, "..", "src", "interfaces", "sdk", "types");
const PAGES = join(import.meta.dirname, "..", "docs", "sdk");
const NOTE = "// Made from the contracts by scripts/sdk-types.ts.\n";

/** What an operation answers with that has nothing to tell. */
const DONE = "Done";

/** Names that the SDK has for its own: what it wraps is the information about it. */
const RENAMED: Readonly<Record<string, string>> = {
  Sandbox: "SandboxInfo",
  Experiment: "ExperimentInfo",
  Attempt: "AttemptInfo",
  Promotion: "PromotionInfo",
  Run: "RunInfo",
  Event: "VivariumEvent",
  Desktop: "DesktopInfo",
  CodeContext: "CodeContextInfo",
};

const nameOf = (id: string): string => RENAMED[id] ?? id;
const upper = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);

function comment(text: string | undefined, indent: string): string {
  return text === undefined || text === "" ? "" : `${indent}/** ${text.replaceAll("*/", "* /")} */\n`;
}

/** A text that stands for a boolean or a number in a query is left out: programs have the real thing. */
function choices(schemas: readonly JsonSchema[]): readonly JsonSchema[] {
  const isFlag = schemas.some(({ type }) => type === "boolean") && schemas.some((one) => one.enum?.includes("true") === true);
  return isFlag ? schemas.filter(({ type }) => type === "boolean") : schemas;
}

const SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ...openApiDocument("").components.schemas,
  Json: {
    description: "Any JSON value.",
    anyOf: [
      { type: ["string", "number", "boolean", "null"] },
      { type: "array", items: { $ref: "#/components/schemas/Json" } },
      { type: "object", additionalProperties: { $ref: "#/components/schemas/Json" } },
    ],
  } as unknown as JsonSchema,
  [DONE]: {
    description: "It is done: failures are errors.",
    type: "object",
    properties: { ok: { type: "boolean", const: true } },
    required: ["ok"],
  },
};
/** With fewer, two things are alike by chance. */
const INHERITED_FIELDS = 5;

/** The largest component whose fields this one has all of, the same, and more. */
function parentOf({ properties = {}, required = [] }: JsonSchema): string | undefined {
  const fields = Object.keys(properties);
  const parents = Object.entries(SCHEMAS).filter(([, { properties: theirs = {}, required: needed = [] }]) => {
    const names = Object.keys(theirs);
    const isSame = (name: string): boolean =>
      JSON.stringify(theirs[name]) === JSON.stringify(properties[name]) && needed.includes(name) === required.includes(name);
    return names.length >= INHERITED_FIELDS && names.length < fields.length && names.every(isSame);
  });
  const size = ([, schema]: [string, JsonSchema]): number => Object.keys(schema.properties ?? {}).length;
  return parents.toSorted((one, other) => size(other) - size(one))[0]?.[0];
}

/** Schemas as TypeScript; what may be left out may be `undefined`, too. */
class Printer {
  readonly used = new Set<string>();
  readonly #input: boolean;

  constructor(input: boolean) {
    this.#input = input;
  }

  type(schema: JsonSchema | boolean, indent: string): string {
    if (typeof schema === "boolean") return "unknown";
    if (schema.$ref !== undefined) return this.#reference(schema.$ref);
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
    const several = schema.anyOf ?? schema.oneOf;
    if (several !== undefined) return [...new Set(choices(several).map((one) => this.type(one, indent)))].join(" | ");
    if (Array.isArray(schema.type)) return schema.type.map((type) => this.type({ ...schema, type }, indent)).join(" | ");
    return this.#ofType(schema, indent);
  }

  #reference(reference: string): string {
    const name = reference.slice(reference.lastIndexOf("/") + 1);
    this.used.add(name);
    return nameOf(name);
  }

  #ofType(schema: JsonSchema, indent: string): string {
    switch (schema.type) {
      case "string":
      case "boolean":
      case "null":
      case "number":
        return schema.type;
      case "integer":
        return "number";
      case "array":
        return this.#array((schema.items ?? true) as JsonSchema, indent);
      case "object":
        return this.#object(schema, indent);
      default:
        return "unknown";
    }
  }

  #array(items: JsonSchema | boolean, indent: string): string {
    const item = this.type(items, indent);
    return /^[\w.]+$/.test(item) ? `${item}[]` : `(${item})[]`;
  }

  #object(schema: JsonSchema, indent: string): string {
    if (schema.properties !== undefined) return `{\n${this.fields(schema, `${indent}  `)}${indent}}`;
    const values = schema.additionalProperties;
    return `{ [name: string]: ${values === undefined || values === false ? "unknown" : this.type(values, indent)} }`;
  }

  fields({ properties = {}, required = [] }: JsonSchema, indent: string): string {
    return Object.entries(properties as Record<string, JsonSchema>)
      .map(([name, schema]) => {
        const needed = required.includes(name);
        const key = /^[a-z_$][\w$]*$/i.test(name) ? name : JSON.stringify(name);
        const type = this.type(schema, indent);
        return `${comment(schema.description, indent)}${indent}${key}${needed ? `: ${type}` : type === "unknown" ? "?: unknown" : `?: ${type} | undefined`};\n`;
      })
      .join("");
  }

  declaration(name: string, schema: JsonSchema): string {
    const head = comment(schema.description, "");
    const parent = this.#input ? undefined : parentOf(schema);
    if (parent !== undefined) {
      this.used.add(parent);
      const inherited = Object.keys(SCHEMAS[parent]?.properties ?? {});
      const own = Object.entries(schema.properties ?? {}).filter(([field]) => !inherited.includes(field));
      const fields = this.fields({ ...schema, properties: Object.fromEntries(own) }, "  ");
      return `${head}export interface ${name} extends ${nameOf(parent)} {\n${fields}}\n`;
    }
    if (schema.properties !== undefined) return `${head}export interface ${name} {\n${this.fields(schema, "  ")}}\n`;
    return `${head}export type ${name} = ${this.type(schema, "")};\n`;
  }
}

interface Printed {
  readonly text: string;
  /** Ids of the components that it names. */
  readonly used: ReadonlySet<string>;
}

function printed(name: string, schema: JsonSchema, input: boolean): Printed {
  const printer = new Printer(input);
  return { text: printer.declaration(name, schema), used: printer.used };
}

/** All fields of an operation, wherever they stand in the request. */
function inputSchema({ parameters, requestBody, summary }: OpenApiOperation): JsonSchema {
  const body = requestBody?.content["application/json"]?.schema ?? {};
  const fields = parameters.map(({ name, schema }) => [name, schema] as const);
  const required = [...parameters.filter((one) => one.required).map(({ name }) => name), ...(body.required ?? [])];
  return {
    description: `Input of: ${summary}.`,
    type: "object",
    properties: { ...Object.fromEntries(fields), ...body.properties },
    required,
  };
}

interface Operation {
  readonly name: string;
  readonly tag: string;
  readonly summary: string;
  readonly inputName: string | undefined;
  readonly outputName: string;
  readonly declarations: readonly Printed[];
  /** The component that it answers with. */
  readonly outputRef: string | undefined;
}

function operation(name: string, described: OpenApiOperation): Operation {
  const answer = Object.entries(described.responses).find(([status]) => status.startsWith("2"))?.[1];
  const output = answer?.content?.["application/json"]?.schema ?? {};
  const ref = Object.keys(output.properties ?? {}).join() === "ok" ? DONE : output.$ref?.slice(output.$ref.lastIndexOf("/") + 1);
  const input = inputSchema(described);
  const inputName = Object.keys(input.properties ?? {}).length === 0 ? undefined : `${upper(name)}Input`;
  const outputName = ref === undefined ? `${upper(name)}Output` : nameOf(ref);
  const declarations = [
    ...(inputName === undefined ? [] : [printed(inputName, input, true)]),
    ...(ref === undefined ? [printed(outputName, { description: `Answer of: ${described.summary}.`, ...output }, false)] : []),
  ];
  return { name, tag: described.tags[0] ?? "", summary: described.summary, inputName, outputName, declarations, outputRef: ref };
}

class Files {
  readonly rendered = new Map<string, string>();
  /** File in which a component stands. */
  readonly #homes = new Map<string, string>();

  /** One tag: the components that no tag before it needs, and its operations. */
  add(tag: string, operations: readonly Operation[], more: readonly string[]): void {
    const answers = operations.flatMap(({ outputRef }) => (outputRef === undefined ? [] : [outputRef]));
    this.#components(tag, [...operations.flatMap(({ declarations }) => [...uses(declarations)]), ...answers, ...more]);
    const declarations = operations.flatMap((one) => one.declarations);
    if (declarations.length > 0) this.#write(inputsOf(tag), declarations);
  }

  #components(file: string, needed: string[]): void {
    const own: Printed[] = [];
    for (let next = needed.shift(); next !== undefined; next = needed.shift()) {
      if (this.#homes.has(next)) continue;
      this.#homes.set(next, file);
      const component = printed(nameOf(next), SCHEMAS[next] ?? {}, false);
      own.push(component);
      needed.push(...component.used);
    }
    if (own.length > 0) this.#write(file, own);
  }

  #write(file: string, declarations: readonly Printed[]): void {
    const others = [...uses(declarations)].map((id) => [nameOf(id), this.home(id)] as const).filter(([, home]) => home !== file);
    this.rendered.set(`${file}.ts`, `${NOTE}${imports(others)}\n${declarations.map(({ text }) => text).join("\n")}`);
  }

  home(id: string): string {
    return this.#homes.get(id) ?? "";
  }
}

/** File of what the operations of a tag take, and of answers that are no component. */
const inputsOf = (tag: string): string => `${tag}-operations`;

function uses(declarations: readonly Printed[]): Set<string> {
  return new Set(declarations.flatMap(({ used }) => [...used]));
}

function imports(names: readonly (readonly [name: string, file: string])[]): string {
  const files = [...new Set(names.map(([, file]) => file))].toSorted();
  const of = (file: string): string => [...new Set(names.filter(([, home]) => home === file).map(([name]) => name))].toSorted().join(", ");
  return files.map((file) => `import type { ${of(file)} } from "./${file}.ts";\n`).join("");
}

/** Messages and events that are no operation's answer. */
const STREAMED: Readonly<Record<string, readonly string[]>> = { runs: ["RunEvent"], commands: ["CommandEnd"], events: ["Event"] };

/** Every file of the folder, by name. */
export function renderTypes(): Map<string, string> {
  const { paths } = openApiDocument("");
  const operations = Object.entries(ROUTES).map(([name, { method, path }]) => operation(name, paths[path]?.[method] as OpenApiOperation));
  const files = new Files();
  const { rendered } = files;
  for (const tag of TAGS)
    files.add(
      tag,
      operations.filter((one) => one.tag === tag),
      STREAMED[tag] ?? [],
    );
  rendered.set("operations.ts", operationTable(operations, files));
  const codes = Object.keys(ERRORS).map((code) => `  | ${JSON.stringify(code)}`);
  rendered.set(
    "error-code.ts",
    `${NOTE}\n/** Every way a call can fail; docs/ERRORS.md says what each means. */\nexport type ErrorCode =\n${codes.join("\n")};\n`,
  );
  const all = [...rendered.keys()].toSorted().map((name) => `export type * from "./${name}";\n`);
  return rendered.set("types.ts", `${NOTE}\n/** All of them, for the entries of the package. */\n${all.join("")}`);
}

function operationTable(operations: readonly Operation[], files: Files): string {
  const names = operations.flatMap(({ tag, inputName, outputName, outputRef }) => [
    ...(inputName === undefined ? [] : [[inputName, inputsOf(tag)] as const]),
    [outputName, outputRef === undefined ? inputsOf(tag) : files.home(outputRef)] as const,
  ]);
  const rows = operations.map(
    ({ name, summary, inputName, outputName }) =>
      `${comment(`${summary}.`, "  ")}  ${name}: { input: ${inputName ?? "Record<string, never>"}; output: ${outputName} };\n`,
  );
  return `${NOTE}${imports(names)}\n/** Every operation of the API, for \`viv.call\`. */\nexport interface Operations {\n${rows.join("")}}\n`;
}

if (import.meta.main) {
  const rendered = renderTypes();
  mkdirSync(FOLDER, { recursive: true });
  for (const name of readdirSync(FOLDER)) if (!rendered.has(name)) rmSync(join(FOLDER, name));
  for (const [name, text] of rendered) writeFileSync(join(FOLDER, name), text);
  for (const [name, text] of renderDataPages(rendered)) writeFileSync(join(PAGES, name), text);
}
