/** The dashboard: links that open it once, and the sessions of browsers that they become. */
import { z } from "zod";
import { Approver } from "./approval.ts";
import { contract, Done, none } from "./contract.ts";
import { SessionId } from "./ids.ts";
import { ROUTES } from "./routes.ts";

export const DashboardSession = z
  .object({
    id: SessionId,
    state: z.enum(["link", "open"]).describe("link: not used yet. open: a browser is logged in."),
    mayAnswer: z.boolean().describe("Whether the person in this browser may answer questions, as on a terminal."),
    browser: z.string().nullable().describe("What the browser calls itself, shortened."),
    createdAt: z.string().describe("ISO time at which the link was made."),
    openedAt: z.string().nullable().describe("ISO time at which the link was used."),
    seenAt: z.string().nullable().describe("ISO time of a late request, to a few minutes."),
    expiresAt: z.string().describe("ISO time from which it opens nothing."),
  })
  .describe("A browser that is logged in to the dashboard, or a link for one.")
  .meta({ id: "DashboardSession" });
export type DashboardSession = z.infer<typeof DashboardSession>;

/** Pages are paths of the dashboard, such as /run/ID. */
export const DashboardPage = z
  .string()
  .max(500)
  .regex(
    /^\/(?:[a-z][a-z-]*(?:\.html)?(?:\/[A-Za-z0-9._-]+)*(?:\?[a-z]+=[A-Za-z0-9._-]+(?:&[a-z]+=[A-Za-z0-9._-]+)*)?)?$/,
    "a page is a path of the dashboard, such as /machine or /run/ID",
  )
  .describe("Path of a page.");

export const LoginInput = z.strictObject({ link: z.string().min(1).max(128).describe("The part of the link behind `#login=`.") });
/** The answer to a login, beside the cookie. */
export const LoginAnswer = z
  .object({
    key: z.string().describe("Goes with every request beside the cookie, in the header viv-key; neither opens anything alone."),
    session: DashboardSession,
  })
  .describe("A session that has begun.");
export type LoginAnswer = z.infer<typeof LoginAnswer>;

export const DASHBOARD_CONTRACTS = {
  openDashboard: contract(
    ROUTES.openDashboard,
    "Make a link that opens the dashboard once; the server listens on loopback from then on",
    z.strictObject({
      page: DashboardPage.default("/"),
      approver: Approver.optional().describe("The approver's token: the person in the browser may then answer questions."),
    }),
    z.object({
      url: z.string().describe("Works once."),
      expiresAt: z.string().describe("ISO time from which the link opens nothing."),
      mayAnswer: z.boolean().describe("Whether the person in the browser may answer questions."),
    }),
    201,
  ),
  listSessions: contract(
    ROUTES.listSessions,
    "Browsers that are logged in to the dashboard, and links that were not used yet",
    none,
    z.object({ sessions: z.array(DashboardSession) }),
  ),
  endSession: contract(ROUTES.endSession, "Log a browser out; its open connections end, too", z.strictObject({ session: SessionId }), Done),
} as const;
