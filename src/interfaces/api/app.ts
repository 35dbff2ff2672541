/** What the server answers beside the operations: streams, documentation, pages, chat clients. */
import { Hono } from "hono";
import type { Engine } from "../operations/operations.ts";
import { ERRORS, VivError } from "../../base/schema/errors.ts";
import { addDashboard, type Dashboard } from "./dashboard.ts";
import { MCP_PATH } from "../../base/schema/mcp.ts";
import { addDocumentation } from "./docs.ts";
import type { AppEnv } from "./env.ts";
import { addStreamRoutes } from "./stream-routes.ts";

export type ErrorListener = (error: VivError) => void;

function errorResponse(error: VivError): Response {
  const headers = { "content-type": "application/json", "cache-control": "no-store" };
  return new Response(JSON.stringify(error.toBody()), { status: ERRORS[error.code].status, headers });
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
