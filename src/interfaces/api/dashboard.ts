/** The dashboard's routes: its pages, and the login that a one-time link leads to. */
import type { Context, Hono } from "hono";
import { LoginInput, LoginAnswer, type DashboardSession } from "../../base/schema/dashboard.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { LOGIN_PATH } from "../../base/schema/routes.ts";
import type { AppEnv } from "./env.ts";
import { pathOf } from "./guard.ts";
import { parse, readJson } from "./input.ts";
import { isPageFile, type Pages } from "./pages.ts";
import type { PreviewAccess } from "./previews/visitor.ts";

export interface Dashboard {
  readonly pages: Pages;
  /** Who was let in to previews of ports. */
  readonly previews: PreviewAccess;
  readonly sessions: {
    login(link: string, browser: string | undefined): Promise<{ session: DashboardSession; cookie: string; key: string }>;
    check(cookie: string, key: string): DashboardSession | undefined;
    /** Aborts when the session is ended. */
    ending(session: string): AbortSignal;
  };
}

export function addDashboard(app: Hono<AppEnv>, { pages, sessions }: Dashboard): void {
  app.post(LOGIN_PATH, async (context) => {
    const { access, incoming } = context.env;
    if (access === undefined)
      throw new VivError("not_found", "Browsers log in at the server's port.", { remedy: "Open a link with `viv open`." });
    const { link } = parse(LoginInput, await readJson(incoming));
    const { cookie, ...opened } = await sessions.login(link, incoming.headers["user-agent"]);
    const age = Math.floor(LIMITS.sessionMs / 1000);
    const secure = access.isSecure ? "; Secure" : "";
    context.header("set-cookie", `${access.cookie}=${cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${age}${secure}`);
    context.header("cache-control", "no-store");
    return context.json(LoginAnswer.parse(opened));
  });
  app.use(async (context, next) => page(context, pages) ?? next());
}

function page(context: Context<AppEnv>, pages: Pages): Response | undefined {
  const path = pathOf(context.env.incoming);
  if (context.req.method !== "GET" || !isPageFile(path)) return undefined;
  return pages.answer(path, { accepted: context.req.header("accept-encoding") ?? "", previews: context.env.access?.previews });
}
