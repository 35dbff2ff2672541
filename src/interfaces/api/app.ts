/** The HTTP API, derived from the contracts: one route an operation, strict input, JSON out. */
import type { ServerResponse } from "node:http";
import { Hono, type Context } from "hono";
import type { Engine } from "../operations/operations.ts";
import { CONTRACTS, type OperationName, type ParsedOf } from "../../base/schema/contracts.ts";
import { ERRORS, VivError } from "../../base/schema/errors.ts";
import { addDashboard, type Dashboard } from "./dashboard.ts";
import { MCP_PATH } from "../../base/schema/mcp.ts";
import { addDocumentation } from "./docs.ts";
import { routerPath, type AppEnv } from "./env.ts";
import { merge, parse, readJson, readQuery } from "./input.ts";
import { addStreamRoutes } from "./stream-routes.ts";

export type ErrorListener = (error: VivError) => void;

function errorResponse(error: VivError): Response {
  const headers = { "content-type": "application/json", "cache-control": "no-store" };
  return new Response(JSON.stringify(error.toBody()), { status: ERRORS[error.code].status, headers });
}

/** Aborts when the client goes away before it has its answer. */
function requestSignal(outgoing: ServerResponse): AbortSignal {
  const controller = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableEnded) controller.abort(new VivError("cancelled", "The caller went away."));
  });
  return controller.signal;
}

async function rawInput(context: Context<AppEnv>, inBody: boolean): Promise<object> {
  const path = context.req.param() as Record<string, string>;
  const query = readQuery(context.req.url);
  if (!inBody) return merge(path, query);
  const extra = Object.keys(query)[0];
  if (extra !== undefined) throw new VivError("invalid_input", `Field "${extra}" belongs in the body.`);
  return merge(path, await readJson(context.env.incoming));
}

function addOperation<Name extends OperationName>(app: Hono<AppEnv>, engine: Engine, name: Name): void {
  const contract = CONTRACTS[name];
  const inBody = contract.method === "post";
  app.on(contract.method.toUpperCase(), routerPath(contract.path), async (context) => {
    const input = parse(contract.input, await rawInput(context, inBody)) as ParsedOf<Name>;
    const output = await engine.operations[name](input, requestSignal(context.env.outgoing));
    // Parsing the answer leaves out what the contract does not name, such as the environment a row holds.
    const body = JSON.stringify(contract.output.parse(output));
    return new Response(body, { status: contract.status, headers: { "content-type": "application/json", "cache-control": "no-store" } });
  });
}

/** Answers chat clients, which speak MCP. */
export type ChatTools = (request: Request) => Promise<Response>;

/** What the app serves beside the operations; a part that is left out has no routes. */
export interface AppParts {
  readonly dashboard: Dashboard | undefined;
  readonly chatTools: ChatTools | undefined;
}

export function createApp(engine: Engine, version: string, { dashboard, chatTools }: AppParts, onError: ErrorListener): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  for (const name of Object.keys(CONTRACTS) as OperationName[]) addOperation(app, engine, name);
  addStreamRoutes(app, engine);
  addDocumentation(app, version);
  if (dashboard !== undefined) addDashboard(app, dashboard);
  if (chatTools !== undefined) app.all(MCP_PATH, (context) => chatTools(context.req.raw));
  app.notFound(() =>
    errorResponse(new VivError("not_found", "There is no such route.", { remedy: "See /docs for the routes there are." })),
  );
  app.onError((error) => {
    const known = VivError.from(error);
    if (known.code === "internal") onError(known);
    return errorResponse(known);
  });
  return app;
}
