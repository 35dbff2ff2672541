/** The OpenAPI document, derived from the same schemas that requests are parsed with. */
import { z } from "zod";
import { CONTRACTS } from "../../base/schema/contracts.ts";
import { ERRORS } from "../../base/schema/errors.ts";
import { TAGS } from "../../base/schema/routes.ts";
import { STREAM_ROUTES, type SocketMessages, type StreamOutput, type StreamRoute } from "../../base/schema/stream-routes.ts";

export type JsonSchema = z.core.JSONSchema.JSONSchema;

interface Parameter {
  name: string;
  in: "path" | "query";
  required: boolean;
  description: string;
  schema: JsonSchema;
}

export interface Content {
  /** An event stream has the schema of its events' data instead. */
  [type: string]: { schema?: JsonSchema; "x-event-data"?: JsonSchema };
}

/** Schemas of the text messages of a WebSocket, and what its binary ones are. */
export interface OpenApiSocket {
  opening?: JsonSchema;
  client: JsonSchema;
  server: JsonSchema;
  binary: string;
}

export interface OpenApiOperation {
  operationId: string;
  summary: string;
  tags: string[];
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, { description: string; content?: Content }>;
  "x-websocket"?: OpenApiSocket;
}

export interface OpenApiDocument {
  openapi: string;
  info: { title: string; version: string; description: string };
  tags: { name: string }[];
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: object };
  security: object[];
}

/** As zod says it, it names itself, which generators of clients don't understand; to them it is any value. */
const JSON_NAME = "Json";
const ANY_JSON: JsonSchema = { description: "Any JSON value." };

const BYTES: JsonSchema = { type: "string", format: "binary" };

const componentName = (name: string): string => (name.startsWith("__schema") ? JSON_NAME : name);

/** Points references at the document's components. */
function relocate(schema: JsonSchema): JsonSchema {
  const text = JSON.stringify(schema).replaceAll(
    /"#\/\$defs\/([^"]+)"/g,
    (_, name: string) => `"#/components/schemas/${componentName(name)}"`,
  );
  return JSON.parse(text) as JsonSchema;
}

class Builder {
  readonly schemas: Record<string, JsonSchema> = {};

  /** A schema with its named parts moved to the components. The array around it makes a named schema a part, too. */
  schema(type: z.ZodType, io: "input" | "output"): JsonSchema {
    const { items, $defs = {} } = z.toJSONSchema(z.array(type), { io, unrepresentable: "any" });
    for (const [name, definition] of Object.entries($defs)) {
      const { id: _, ...rest } = definition as JsonSchema & { id?: string };
      const component = componentName(name);
      this.schemas[component] = component === JSON_NAME ? ANY_JSON : relocate(rest);
    }
    return relocate(items as JsonSchema);
  }

  parameters(path: string, input: z.ZodObject, inPath: boolean): Parameter[] {
    return Object.entries(input.shape as Record<string, z.ZodType>)
      .filter(([name]) => path.includes(`{${name}}`) === inPath)
      .map(([name, type]) => {
        const schema = this.schema(type, "input");
        const required = inPath || !type.safeParse(undefined).success;
        return { name, in: inPath ? "path" : "query", required, description: schema.description ?? type.description ?? "", schema };
      });
  }

  body(path: string, input: z.ZodObject): OpenApiOperation["requestBody"] {
    const names = Object.keys(input.shape).filter((name) => !path.includes(`{${name}}`));
    if (names.length === 0) return undefined;
    const shape: Readonly<Record<string, z.ZodType>> = input.shape;
    const schema = this.schema(z.strictObject(Object.fromEntries(names.map((name) => [name, shape[name] ?? z.unknown()]))), "input");
    return { required: (schema.required ?? []).length > 0, content: { "application/json": { schema } } };
  }
}

const failure = {
  description: "An error with its code, one sentence, and what to do now.",
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
};

function operation(builder: Builder, name: keyof typeof CONTRACTS): OpenApiOperation {
  const contract = CONTRACTS[name];
  const input: z.ZodObject = contract.input;
  const inBody = contract.method === "post";
  const requestBody = inBody ? builder.body(contract.path, input) : undefined;
  return {
    operationId: name,
    summary: contract.summary,
    tags: [contract.tag],
    parameters: [...builder.parameters(contract.path, input, true), ...(inBody ? [] : builder.parameters(contract.path, input, false))],
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: {
      [contract.status]: { description: "Done.", content: { "application/json": { schema: builder.schema(contract.output, "output") } } },
      default: failure,
    },
  };
}

function streamOperation(builder: Builder, name: keyof typeof STREAM_ROUTES): OpenApiOperation {
  const route: StreamRoute = STREAM_ROUTES[name];
  const { output } = route;
  return {
    operationId: name,
    summary: route.summary,
    tags: [route.tag],
    parameters: [...builder.parameters(route.path, route.input, true), ...builder.parameters(route.path, route.input, false)],
    ...(route.body === undefined ? {} : { requestBody: { required: true, content: { [route.body]: { schema: BYTES } } } }),
    responses: {
      ...("messages" in output
        ? { "101": { description: "A WebSocket; x-websocket says what travels over it." } }
        : { "200": { description: "Done.", content: streamContent(builder, output) } }),
      default: failure,
    },
    ...("messages" in output ? { "x-websocket": socketMessages(builder, output.messages) } : {}),
  };
}

function streamContent(builder: Builder, output: Exclude<StreamOutput, { messages: SocketMessages }>): Content {
  if ("json" in output) return { "application/json": { schema: builder.schema(output.json, "output") } };
  if ("bytes" in output) return { [output.bytes]: { schema: BYTES } };
  return { "text/event-stream": { "x-event-data": builder.schema(output.events, "output") } };
}

function socketMessages(builder: Builder, { opening, client, server, binary }: SocketMessages): OpenApiSocket {
  return {
    ...(opening === undefined ? {} : { opening: builder.schema(opening, "input") }),
    client: builder.schema(client, "input"),
    server: builder.schema(server, "output"),
    binary,
  };
}

const METHODS_OF = {
  get: ["get"],
  post: ["post"],
  put: ["put"],
  websocket: ["get"],
  any: ["get", "post", "put", "patch", "delete"],
} as const;

export function openApiDocument(version: string): OpenApiDocument {
  const builder = new Builder();
  const paths: OpenApiDocument["paths"] = {};
  for (const name of Object.keys(CONTRACTS) as (keyof typeof CONTRACTS)[]) {
    const { path, method } = CONTRACTS[name];
    (paths[path] ??= {})[method] = operation(builder, name);
  }
  for (const name of Object.keys(STREAM_ROUTES) as (keyof typeof STREAM_ROUTES)[]) {
    const { path, method } = STREAM_ROUTES[name];
    for (const one of METHODS_OF[method]) {
      const described = streamOperation(builder, name);
      (paths[path] ??= {})[one] = method === "any" ? { ...described, operationId: `${name}-${one}` } : described;
    }
  }
  builder.schemas["Error"] = errorSchema();
  return {
    openapi: "3.1.0",
    info: { title: "Vivarium", version, description: "Instant, disposable clones of the real machine for AI coding agents." },
    tags: TAGS.map((name) => ({ name })),
    paths,
    components: { schemas: builder.schemas, securitySchemes: { token: { type: "http", scheme: "bearer" } } },
    security: [{ token: [] }],
  };
}

function errorSchema(): JsonSchema {
  const text = { type: "string" } as const;
  const error = {
    type: "object",
    required: ["code", "message", "remedy"],
    properties: { code: { type: "string", enum: Object.keys(ERRORS) }, message: text, remedy: text },
  } as const;
  return { type: "object", required: ["error"], properties: { error } } as unknown as JsonSchema;
}
