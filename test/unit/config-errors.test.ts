/** A wrong value in a config is told with what may stand there, whichever key it is. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { parseConfig } from "../../src/base/config/project-config.ts";
import { ProjectConfig, UserConfig } from "../../src/base/schema/config.ts";

interface Node {
  readonly pattern?: string;
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly (string | number | boolean | null)[];
  readonly anyOf?: readonly Node[];
  readonly items?: Node;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Node | boolean;
  readonly propertyNames?: Node;
  readonly minimum?: number;
  readonly minItems?: number;
}

function said(schema: z.ZodType, value: unknown): string {
  try {
    parseConfig("vivarium.json", JSON.stringify(value), schema);
  } catch (error) {
    return (error as Error).message;
  }
  return "it is taken";
}

/** Something that the schema takes, for the keys beside the wrong one. */
function fine(node: Node): unknown {
  if (node.enum !== undefined) return node.enum[0];
  if (node.anyOf !== undefined) return fine(node.anyOf[0] ?? {});
  if (node.type === "object") return object(node);
  if (node.type === "array") return (node.minItems ?? 0) > 0 ? [fine(node.items ?? {})] : [];
  // The one text with a form of its own that stands beside others: a time of day.
  if (node.pattern?.includes("[0-5]\\d") === true) return "08:30";
  return node.type === "string" ? "a" : (node.minimum ?? 1);
}

function object({ properties = {}, required = [] }: Node): Record<string, unknown> {
  return Object.fromEntries(required.map((name) => [name, fine(properties[name] ?? {})]));
}

type Wrap = (value: unknown) => unknown;

/** Every key, with a config around it that is right but for its value. */
function* keysOf(node: Node, path: string, wrap: Wrap): Generator<{ path: string; node: Node; wrap: Wrap }> {
  if (path !== "") yield { path, node, wrap };
  for (const one of node.anyOf ?? [node]) {
    for (const [name, child] of Object.entries(one.properties ?? {}))
      yield* keysOf(child, `${path}.${name}`, (value) => wrap({ ...object(one), [name]: value }));
    if (one.items !== undefined) yield* keysOf(one.items, `${path}.0`, (value) => wrap([value]));
    const each = one.additionalProperties;
    const name = String(one.propertyNames?.enum?.[0] ?? "name");
    if (typeof each === "object" && one.properties === undefined)
      yield* keysOf(each, `${path}.${name}`, (value) => wrap({ [name]: value }));
  }
}

const schemaOf = (schema: z.ZodType): Node => z.toJSONSchema(schema, { io: "input" }) as Node;

describe.each([
  ["vivarium.json", ProjectConfig],
  ["the user's config", UserConfig],
] as const)("a wrong value in %s", (_, schema) => {
  const keys = [...keysOf(schemaOf(schema), "", (value) => value)];

  test.each(keys.map((one) => [one.path.slice(1), one] as const))("is told with what may stand there: %s", (path, { node, wrap }) => {
    // No key takes a list in a list.
    const message = said(schema, wrap([["wrong"]]));
    expect(message).toContain("it must be ");
    expect(message).not.toMatch(/Invalid|expected|undefined|something else|anything/);
    const place = path.replace(/\.0$/, "");
    expect(message).toContain(place);
    for (const value of node.enum ?? []) expect(message).toContain(String(value));
  });
});

describe("a stage", () => {
  const stage = (more: object): string => said(ProjectConfig, { stages: [{ name: "dev", apply: "none", ...more }] });

  test.each<[object, string]>([
    [
      { apply: "deploy" },
      'apply: it must be none, verify, folder, branch, an object with push (needed) or an object with run (needed), not "deploy".',
    ],
    [{ apply: { run: "" } }, "stages.0.apply.run: it must be a text that is not empty"],
    [{ apply: undefined }, "stages.0.apply: it is missing; it must be none, verify, folder, branch"],
    [{ approval: "yes" }, 'stages.0.approval: it must be none or ask, not "yes".'],
    [{ name: "A b" }, "stages.0.name: a name is lower-case letters, digits and hyphens."],
    [{ check: [] }, "stages.0.check: there is no such key; there are name, apply, after, checks, approval, rollback."],
  ])("that is wrong says what is allowed: %j", (more, expected) => {
    expect(stage(more)).toContain(expected);
  });

  test("has a name of its own", () => {
    const stages = [1, 2].map(() => ({ name: "dev", apply: "none" }));
    expect(said(ProjectConfig, { stages })).toContain("stages: two stages have the same name.");
  });
});

describe("a config", () => {
  test("lists the names that a map may have", () => {
    expect(said(ProjectConfig, { policy: { roles: { boss: {} } } })).toMatch(/there is no such key; there are \w+(, \w+)+\./);
  });

  test("that is wrong in a key of secrets does not repeat what stands there", () => {
    expect(said(UserConfig, { forge: { token: ["hunter2"] } })).not.toContain("hunter2");
  });
});
