/** /openapi.json and /docs: one page without outside help, so that it works offline. */
import { createHash } from "node:crypto";
import type { Hono } from "hono";
import type { AppEnv } from "./env.ts";
import {
  openApiDocument,
  type Content,
  type JsonSchema,
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiSocket,
} from "./openapi.ts";
import { SCRIPT, STYLE } from "./docs-assets.ts";

const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text: string): string => text.replaceAll(/[&<>"]/g, (char) => escapes[char] ?? char);

/** A type in a word or two, with links to named ones. */
function typeName(schema: JsonSchema | undefined): string {
  if (schema === undefined) return "bytes";
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split("/").at(-1) ?? "";
    return `<a href="#schema-${escape(name)}">${escape(name)}</a>`;
  }
  if (schema.const !== undefined) return `<code>${escape(JSON.stringify(schema.const))}</code>`;
  if (schema.enum !== undefined) return schema.enum.map((value) => `<code>${escape(String(value))}</code>`).join(" ");
  const options = schema.anyOf ?? schema.oneOf;
  if (options !== undefined) return options.map((option) => typeName(option)).join(" or ");
  if (schema.type === "array") return `list of ${typeName(schema.items as JsonSchema | undefined)}`;
  if (schema.type === "object" && schema.properties === undefined) return "map";
  return escape([schema.type ?? "any value"].flat().join(" or "));
}

function nested(schema: JsonSchema): string {
  const inner = schema.type === "array" ? (schema.items as JsonSchema | undefined) : schema;
  return inner?.properties === undefined ? "" : fields(inner);
}

function fields(schema: JsonSchema): string {
  const required = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(([name, value]) => {
    const field = value as JsonSchema;
    const fallback =
      field.default === undefined ? "" : ` <span class="muted">default <code>${escape(JSON.stringify(field.default))}</code></span>`;
    return `<tr><td><code>${escape(name)}</code>${required.has(name) ? "" : ' <span class="muted">optional</span>'}</td><td>${typeName(field)}</td><td>${escape(field.description ?? "")}${fallback}${nested(field)}</td></tr>`;
  });
  return rows.length === 0 ? "" : `<table>${rows.join("")}</table>`;
}

/** What a named schema is made of: its fields, or those of each of its choices. */
function inside(schema: JsonSchema): string {
  const own = fields(schema);
  if (own !== "") return own;
  const choices = (schema.anyOf ?? schema.oneOf ?? []).map((choice) => fields(choice)).filter(Boolean);
  return choices.length === 0 ? `<p>${typeName(schema)}</p>` : choices.join("<p>or</p>");
}

function content(body: { content?: Content }): string {
  const [type, media] = Object.entries(body.content ?? {})[0] ?? [];
  if (type === undefined) return "";
  const { schema, "x-event-data": data } = media ?? {};
  if (data !== undefined)
    return `<p><code>${escape(type)}</code>, the data of each event:</p>${data.properties === undefined ? `<p>${typeName(data)}</p>` : fields(data)}`;
  if (schema === undefined) return `<p><code>${escape(type)}</code></p>`;
  return schema.properties === undefined ? `<p>${typeName(schema)}</p>` : fields(schema);
}

function parameters(operation: OpenApiOperation): string {
  if (operation.parameters.length === 0) return "";
  const rows = operation.parameters.map(
    (parameter) =>
      `<tr><td><code>${escape(parameter.name)}</code> <span class="muted">${parameter.in}${parameter.required ? "" : ", optional"}</span></td><td>${typeName(parameter.schema)}</td><td>${escape(parameter.description)}</td></tr>`,
  );
  return `<h4>Parameters</h4><table>${rows.join("")}</table>`;
}

function messages({ opening, client, server, binary }: OpenApiSocket): string {
  const rows = [
    ["first", opening],
    ["then from the caller", client],
    ["from the server", server],
  ] as const;
  const texts = rows.flatMap(([who, schema]) => (schema === undefined ? [] : [`<tr><td>${who}</td><td>${typeName(schema)}</td></tr>`]));
  return `<p>A WebSocket. Text messages are JSON:</p><table>${texts.join("")}</table><p>Binary messages: ${escape(binary)}.</p>`;
}

function operationHtml(method: string, path: string, operation: OpenApiOperation): string {
  const socket = operation["x-websocket"];
  const verb = socket === undefined ? method : "ws";
  const answer = Object.entries(operation.responses).find(([status]) => status !== "default");
  return `<details class="operation" id="${escape(operation.operationId)}" data-text="${escape(`${verb} ${path} ${operation.summary} ${operation.operationId}`.toLowerCase())}">
<summary><span class="verb ${verb}">${verb.toUpperCase()}</span><code class="path">${escape(path)}</code><span class="about">${escape(operation.summary)}</span></summary>
<div class="inside">${parameters(operation)}${operation.requestBody === undefined ? "" : `<h4>Body</h4>${content(operation.requestBody)}`}
${answer === undefined ? "" : `<h4>Answer ${escape(answer[0])}</h4>${socket === undefined ? content(answer[1]) : messages(socket)}`}</div></details>`;
}

function groups(document: OpenApiDocument): Map<string, string[]> {
  const byTag = new Map<string, string[]>(document.tags.map(({ name }) => [name, []]));
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (operation.operationId.startsWith("proxy-") && method !== "get") continue;
      const tag = operation.tags[0] ?? "server";
      byTag.set(tag, [
        ...(byTag.get(tag) ?? []),
        operationHtml(operation.operationId.startsWith("proxy-") ? "any" : method, path, operation),
      ]);
    }
  }
  return byTag;
}

/** How to call at all; the routes below say the rest. */
const ACCESS = `<p>On the Unix socket in the state folder (<code>viv status</code> names it) no token is needed. On the TCP port, which <code>viv up --listen PORT</code> opens, every call but this page carries the token that <code>viv up</code> prints:</p>
<pre><code>curl --unix-socket /var/lib/vivarium/viv.sock http://localhost/sandboxes
curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:7777/sandboxes</code></pre>
<p>Bodies and answers are JSON. An error is <code>{"error": {"code", "message", "remedy"}}</code>; unknown fields are refused.</p>`;

function page(document: OpenApiDocument): string {
  const byTag = groups(document);
  const sections = [...byTag].map(([tag, operations]) => `<section id="group-${tag}"><h2>${tag}</h2>${operations.join("\n")}</section>`);
  const schemas = Object.entries(document.components.schemas)
    .sort(([one], [other]) => one.localeCompare(other))
    .map(
      ([name, schema]) =>
        `<details class="operation" id="schema-${escape(name)}" data-text="${escape(name.toLowerCase())}"><summary><code class="path">${escape(name)}</code><span class="about">${escape(schema.description ?? "")}</span></summary><div class="inside">${inside(schema)}</div></details>`,
    );
  const links = [...byTag.keys(), "schemas"].map((tag) => `<a href="#group-${tag}">${tag}</a>`).join("");
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Vivarium API</title><style>${STYLE}</style></head>
<body><header><h1>Vivarium <span class="muted">API ${escape(document.info.version)}</span></h1><p>${escape(document.info.description)} The same as a document: <a href="/openapi.json">openapi.json</a>.</p>
${ACCESS}
<nav>${links}</nav><input id="filter" type="search" placeholder="Filter, for example snapshot" aria-label="Filter routes"></header>
<main>${sections.join("\n")}<section id="group-schemas"><h2>schemas</h2>${schemas.join("\n")}</section></main><script>${SCRIPT}</script></body></html>`;
}

const hash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

export function addDocumentation(app: Hono<AppEnv>, version: string): void {
  let made: { json: string; html: string } | undefined;
  const make = (): { json: string; html: string } => {
    if (made !== undefined) return made;
    const document = openApiDocument(version);
    made = { json: JSON.stringify(document), html: page(document) };
    return made;
  };
  const policy = `default-src 'none'; style-src ${hash(STYLE)}; script-src ${hash(SCRIPT)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  app.get(
    "/openapi.json",
    () => new Response(make().json, { headers: { "content-type": "application/json", "x-content-type-options": "nosniff" } }),
  );
  app.get(
    "/docs",
    () =>
      new Response(make().html, {
        headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": policy, "x-content-type-options": "nosniff" },
      }),
  );
}
