/** Use cases of the dashboard: links that open it, and the browsers that are logged in. */
import type { Approvals } from "../../rules/approvals/approvals.ts";
import type { Sessions } from "../../rules/sessions/sessions.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { PreviewSite } from "../../base/schema/preview.ts";
import type { ParsedOf } from "../../base/schema/contracts.ts";
import type { Handlers } from "./operations.ts";

interface Opened {
  readonly port: number;
  readonly origin: string;
  readonly previews: PreviewSite | undefined;
}

type OpenPort = (port: number) => Promise<Opened>;

/** Makes links, and opens the port that they lead to when the first one is made. */
export class DashboardDoor {
  readonly sessions: Sessions;
  readonly #approvals: Approvals;
  readonly #openPort: OpenPort;

  /** `openPort` answers with what is open, which is another port if there was one already. */
  constructor(sessions: Sessions, approvals: Approvals, openPort: OpenPort) {
    this.sessions = sessions;
    this.#approvals = approvals;
    this.#openPort = openPort;
  }

  async open({ page, approver }: ParsedOf<"openDashboard">): ReturnType<Handlers["openDashboard"]> {
    if (approver !== undefined) this.#approvals.requireApprover(approver);
    const mayAnswer = approver !== undefined;
    const { port, origin } = await this.opened();
    const { secret, session } = await this.sessions.link(port, mayAnswer);
    // Behind the #, it is in no log, and programs that look at links to show a preview do not use it up.
    return { url: `${origin}${page}#login=${secret}`, expiresAt: session.expiresAt, mayAnswer };
  }

  /** The usual port, so that pages keep their address; any free one where another program has it. */
  async opened(): ReturnType<OpenPort> {
    try {
      return await this.#openPort(this.sessions.port ?? LIMITS.dashboardPort);
    } catch (error) {
      if (!(error instanceof VivError) || error.code !== "config_invalid") throw error;
      return this.#openPort(0);
    }
  }
}

export function dashboardHandlers(door: DashboardDoor): Pick<Handlers, "openDashboard" | "listSessions" | "endSession"> {
  return {
    openDashboard: (input) => door.open(input),
    listSessions: async () => ({ sessions: door.sessions.list() }),
    endSession: async ({ session }) => (await door.sessions.end(session), { ok: true }),
  };
}
