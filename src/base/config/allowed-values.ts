/** What a key of a config may hold, in words, from the schema of the config. */
import { z } from "zod";

interface Node {
  readonly $ref?: string;
  readonly type?: string;
  readonly const?: string | number | boolean | null;
  readonly enum?: readonly (string | number | boolean | null)[];
  readonly anyOf?: readonly Node[];
  readonly oneOf?: readonly Node[];
  readonly allOf?: readonly Node[];
  readonly description?: string;
  readonly pattern?: string;
  readonly format?: string;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: Node;
  readonly prefixItems?: readonly Node[];
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly propertyNames?: Node;
  readonly additionalProperties?: Node | boolean;
}

const MOST_DEPTH = 3;

export class AllowedValues {
  readonly #root: Node;
  readonly #named: Readonly<Record<string, Node>>;

  constructor(schema: z.ZodType) {
    // As a person writes it: before defaults and units are applied.
    const made = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Node & { readonly $defs?: Record<string, Node> };
    this.#root = made;
    this.#named = made.$defs ?? {};
  }

  /** "off, allow-list or public"; undefined where the schema says nothing of the place. */
  at(path: readonly PropertyKey[]): string | undefined {
    const nodes = this.#find(path);
    return nodes.length === 0 ? undefined : this.#anyOf(nodes, MOST_DEPTH);
  }

  /** Keys that may stand at a place. */
  keysAt(path: readonly PropertyKey[]): string[] {
    return [...new Set(this.#find(path).flatMap((node) => this.#choices(node).flatMap(keysOf)))];
  }

  #find(path: readonly PropertyKey[]): Node[] {
    return path.reduce<Node[]>((nodes, part) => nodes.flatMap((node) => this.#below(node, part)), [this.#root]);
  }

  #below(node: Node, part: PropertyKey): Node[] {
    return this.#choices(node).flatMap((one) => {
      if (typeof part === "number") return one.prefixItems?.[part] ?? one.items ?? [];
      const more = typeof one.additionalProperties === "object" ? one.additionalProperties : [];
      return one.properties?.[String(part)] ?? more;
    });
  }

  /** The alternatives that a node stands for. */
  #choices(node: Node): Node[] {
    if (node.$ref !== undefined) {
      const named = this.#named[node.$ref.replace(/^#\/\$defs\//, "")];
      return named === undefined ? [] : this.#choices(named);
    }
    const alternatives = node.anyOf ?? node.oneOf ?? node.allOf;
    return alternatives === undefined ? [node] : alternatives.flatMap((one) => this.#choices(one));
  }

  #anyOf(nodes: readonly Node[], depth: number): string {
    const words = nodes.flatMap((node) => this.#choices(node)).flatMap((node) => this.#words(node, depth));
    const [last = "anything", ...others] = [...new Set(words)].toReversed();
    return others.length === 0 ? last : `${others.toReversed().join(", ")} or ${last}`;
  }

  #words(node: Node, depth: number): string[] {
    if (node.enum !== undefined) return node.enum.map(String);
    if (node.const !== undefined) return [String(node.const)];
    switch (node.type) {
      case "string":
        return [textOf(node)];
      case "integer":
        return [`a whole number${range(node)}`];
      case "number":
        return [`a number${range(node)}`];
      case "boolean":
        return ["true", "false"];
      case "null":
        return ["null"];
      case "array":
        return [this.#list(node, depth)];
      case "object":
        return [this.#object(node, depth)];
      default:
        return ["anything"];
    }
  }

  #list({ items, minItems = 0, maxItems }: Node, depth: number): string {
    const most = maxItems === undefined ? "" : minItems > 0 ? ` of ${minItems} to ${maxItems}` : ` of at most ${maxItems}`;
    const count = most === "" && minItems > 0 ? ` of at least ${minItems}` : most;
    return items === undefined || depth === 0 ? `a list${count}` : `a list${count}, each ${this.#anyOf([items], depth - 1)}`;
  }

  #object({ properties, required = [], propertyNames, additionalProperties: each }: Node, depth: number): string {
    if (propertyNames?.enum !== undefined) return `an object with ${propertyNames.enum.join(", ")}`;
    if (properties === undefined)
      return typeof each === "object" && depth > 0 ? `an object whose values are ${this.#anyOf([each], depth - 1)}` : "an object";
    const names = Object.keys(properties).map((name) => (required.includes(name) ? `${name} (needed)` : name));
    return `an object with ${names.join(", ")}`;
  }
}

/** Those that are named, and those of a map whose names are given. */
function keysOf({ properties = {}, propertyNames }: Node): string[] {
  return [...Object.keys(properties), ...(propertyNames?.enum ?? []).map(String)];
}

function textOf({ pattern, minLength = 0, format, description }: Node): string {
  if (format === "uri") return "an address such as https://example.com";
  const start = /^\^\(?\\?\/(?:\.\*\))?(?:\.\*)?\$?$/.test(pattern ?? "");
  if (start) return "a text that begins with /";
  if (pattern === undefined) return minLength > 0 ? "a text that is not empty" : "a text";
  return description === undefined ? `a text like ${pattern}` : `a text (${description.replace(/\.$/, "")})`;
}

function range({ minimum, exclusiveMinimum, maximum }: Node): string {
  const most = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  const least = minimum === -Number.MAX_SAFE_INTEGER ? undefined : minimum;
  if (least !== undefined && most !== undefined) return ` from ${least} to ${most}`;
  if (exclusiveMinimum !== undefined) return ` above ${exclusiveMinimum}`;
  return least === undefined ? (most === undefined ? "" : ` of at most ${most}`) : ` of at least ${least}`;
}
