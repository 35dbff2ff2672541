/** The tools over Streamable HTTP, in the server itself. Who may speak was decided before a request comes here. */
import { randomBytes } from "node:crypto";
import type { McpHttpHandler, McpServerFactory } from "@modelcontextprotocol/server";
import { Client } from "../client/client.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { VivError } from "../../base/schema/errors.ts";
import { chosenTools, DEFAULT_TOOLS, TOOL_SETS, type ToolName } from "../../base/schema/mcp.ts";
import { tooLong } from "./long-message.ts";
import { realFolder } from "./projects.ts";

/** The status of a request whose body is too long. */
const TOO_LARGE = 413;

export interface HttpToolsOptions {
  /** The server's own socket: the tools are a client like every other. */
  readonly socket: string;
  readonly version: string;
  readonly projects: readonly string[];
  /** Where programs of agents are looked for. */
  readonly path: string | undefined;
}

export class HttpTools {
  readonly #options: HttpToolsOptions;
  #handler: Promise<McpHttpHandler> | undefined;
  #client: Client | undefined;

  constructor(options: HttpToolsOptions) {
    this.#options = options;
  }

  async answer(request: Request): Promise<Response> {
    toolsOf(request);
    this.#handler ??= this.#make();
    const answer = await (await this.#handler).fetch(request);
    if (answer.status !== TOO_LARGE) return answer;
    return new Response(tooLong(undefined), { status: TOO_LARGE, headers: { "content-type": "application/json" } });
  }

  /** Loaded with the first request: the package takes a while, and most servers never need it. */
  async #make(): Promise<McpHttpHandler> {
    const [{ createMcpHandler }, { mcpServers }] = await Promise.all([import("@modelcontextprotocol/server"), import("./mcp.ts")]);
    const { socket, version, projects, path } = this.#options;
    const client = (this.#client = new Client({ socket }));
    const parts = {
      version,
      client: async () => client,
      env: path === undefined ? {} : { PATH: path },
      projects: projects.flatMap((folder) => realFolder(folder) ?? []),
      downloads: undefined,
      key: randomBytes(32),
    };
    const factory: McpServerFactory = (connection) =>
      mcpServers({ ...parts, tools: toolsOf(connection.requestInfo) }, () => undefined)(connection);
    return createMcpHandler(factory, { maxRequestBodySize: LIMITS.maxToolMessageBytes, keepAliveMs: LIMITS.toolProgressMs });
  }

  async close(): Promise<void> {
    await (await this.#handler)?.close();
    this.#client?.close();
  }
}

/** Those that the address names, as in /mcp?tools=default,notebook. */
function toolsOf(request: Pick<Request, "url"> | undefined): readonly ToolName[] {
  const names = request === undefined ? null : new URL(request.url).searchParams.get("tools");
  if (names === null) return DEFAULT_TOOLS;
  const { tools, unknown } = chosenTools(names);
  if (unknown === undefined) return tools;
  throw new VivError("invalid_input", `There is no tool ${JSON.stringify(unknown.slice(0, 100))}.`, {
    remedy: `Name tools, or the sets ${Object.keys(TOOL_SETS).join(", ")}.`,
  });
}
