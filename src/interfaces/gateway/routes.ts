/** Answers what sandboxes ask: finds the route, holds the limits, knows who is who. */
import type { Actions } from "../../rules/actions/actions.ts";
import type { Approvals } from "../../rules/approvals/approvals.ts";
import type { Audit } from "../../rules/audit/audit.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import { staleness } from "../../sandbox/changes/status.ts";
import { VivError } from "../../base/schema/errors.ts";
import { ResourcesInput } from "../../base/schema/gateway.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { about } from "./about.ts";
import { asTool, decideInside, policyInside } from "./actions.ts";
import { Conversations } from "./conversations.ts";
import { Decisions } from "./decisions.ts";
import { Dropped } from "./dropped.ts";
import type { Routes } from "./gateway.ts";
import { parse, type Reply, type Request } from "./http.ts";
import { Questions } from "./questions.ts";
import { Rates } from "./rates.ts";
import { Resources } from "./resources.ts";

export interface GatewayParts {
  readonly parts: Parts;
  readonly sandboxes: Sandboxes;
  readonly audit: Audit;
  readonly approvals: Approvals;
  readonly actions: Actions;
}

/** A request whose sender and route are known. */
export interface Call extends Request {
  readonly row: SandboxRow;
  /** Parts of the path that stand for something, by name. */
  readonly named: Readonly<Record<string, string>>;
}

interface Route {
  readonly method: "GET" | "POST";
  /** Parts of the path; those with a colon are names, and `:id` is the caller itself. */
  readonly path: readonly string[];
  /** Beside what holds for all requests. */
  readonly rate: keyof typeof RATES | undefined;
  readonly answer: (call: Call) => Promise<Reply>;
}

const RATES = {
  request: { burst: 1_000, perSecond: 200 },
  decision: { burst: 500, perSecond: 50 },
  action: { burst: 500, perSecond: 50 },
  coordinate: { burst: 30, perSecond: 1 },
  question: { burst: 20, perSecond: 0.2 },
  resources: { burst: 20, perSecond: 0.2 },
  staleness: { burst: 10, perSecond: 0.5 },
} as const;

export class GatewayRoutes implements Routes {
  readonly #parts: GatewayParts;
  readonly #routes: readonly Route[];
  readonly #rates = new Rates(RATES);
  readonly #dropped: Dropped;
  readonly #conversations: Conversations;
  readonly #resources: Resources;

  constructor(parts: GatewayParts) {
    this.#parts = parts;
    this.#dropped = new Dropped(parts.audit);
    this.#conversations = new Conversations(parts);
    this.#resources = new Resources(parts);
    this.#routes = this.#table();
  }

  #table(): Route[] {
    const { parts, audit, approvals, actions } = this.#parts;
    const [talk, decisions, questions] = [this.#conversations, new Decisions(audit), new Questions(approvals)];
    const coordinate: Route["answer"] = (call) => asTool(actions, call, "coordinate_sibling", (each) => talk.coordinate(each));
    const more: Route["answer"] = (call) => asTool(actions, call, "request_resources", (each) => this.#more(each));
    return [
      route("GET", "sandbox/:id", undefined, (call) => about(parts, call)),
      route("POST", "sandbox/:id/decisions", "decision", (call) => decisions.report(call)),
      route("GET", "sandbox/:id/decisions", undefined, (call) => decisions.list(call)),
      route("POST", "sandbox/:id/actions", "action", (call) => decideInside(actions, call)),
      route("GET", "sandbox/:id/policy", undefined, (call) => policyInside(actions, call)),
      route("POST", "sandbox/:to/coordinate", "coordinate", coordinate),
      route("POST", "sandbox/:id/coordinate/:to", "coordinate", coordinate),
      route("GET", "sandbox/:id/messages", undefined, (call) => talk.messages(call)),
      route("POST", "sandbox/:id/messages/:message/answer", undefined, (call) => talk.answer(call)),
      route("POST", "sandbox/:id/resources", "resources", more),
      route("GET", "sandbox/:id/staleness", "staleness", async ({ row }) => ({ status: 200, body: await staleness(parts, row) })),
      route("POST", "sandbox/:id/approvals", "question", (call) => questions.ask(call)),
      route("GET", "sandbox/:id/approvals/:approval", undefined, (call) => questions.look(call)),
    ];
  }

  async resume(): Promise<void> {
    await this.#parts.approvals.resume();
    await this.#resources.resume();
  }

  close(): void {
    this.#resources.close();
    this.#dropped.close();
  }

  forget(sandbox: string): void {
    this.#conversations.forget(sandbox);
    this.#dropped.tell(sandbox);
    this.#rates.forget(sandbox);
  }

  admit(sandbox: string): void {
    this.#hold(sandbox, "request");
  }

  async answer(sandbox: string, request: Request): Promise<Reply> {
    const row = await this.#parts.parts.store.sandboxes.get(sandbox);
    if (row === undefined || row.removing) throw new VivError("not_running", "The sandbox is being removed.");
    const { found, named } = this.#find(request);
    if (found === undefined || !isOwn(row, named["id"]))
      throw new VivError("not_found", `There is no ${request.method} /${request.path.join("/").slice(0, 200)} for this sandbox.`, {
        remedy: "Use `self` or the sandbox's own id; docs/GATEWAY.md has the routes.",
      });
    if (found.rate !== undefined) this.#hold(row.id, found.rate, found.rate === "action" ? weightOf(request.body) : 1);
    this.#parts.parts.live.touch(row.id);
    return found.answer({ ...request, row, named });
  }

  #find({ method, path }: Request): { found?: Route; named: Record<string, string> } {
    for (const found of this.#routes) {
      const named = found.method === method ? match(found.path, path) : undefined;
      if (named !== undefined) return { found, named };
    }
    return { named: {} };
  }

  #hold(sandbox: string, kind: keyof typeof RATES, weight = 1): void {
    const waitMs = this.#rates.take(sandbox, kind, weight);
    if (waitMs === 0) return;
    this.#dropped.count(sandbox, kind);
    throw new VivError("rate_limited", `Too many requests of this kind; the next one in ${waitMs} ms.`);
  }

  async #more({ row, body }: Call): Promise<Reply> {
    const result = await this.#resources.ask(row, parse(ResourcesInput, body));
    if ("limits" in result) return { status: 200, body: { granted: true, limits: result.limits } };
    const { id, state, deadline } = result.approval;
    return { status: 202, body: { granted: false, approval: id, state, deadline } };
  }
}

/** The policy takes long for long actions, and the server does nothing else meanwhile. */
function weightOf(body: unknown): number {
  return 1 + Math.floor((JSON.stringify(body) ?? "").length / 2048);
}

function route(method: Route["method"], path: string, rate: Route["rate"], answer: Route["answer"]): Route {
  return { method, path: path.split("/"), rate, answer };
}

function match(pattern: readonly string[], path: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== path.length) return undefined;
  const named: Record<string, string> = {};
  for (const [index, part] of pattern.entries()) {
    const given = path[index] ?? "";
    if (part.startsWith(":")) named[part.slice(1)] = given;
    else if (part !== given) return undefined;
  }
  return named;
}

/** Routes without it name another sandbox on purpose. */
function isOwn(row: SandboxRow, given: string | undefined): boolean {
  return given === undefined || given === "self" || given === row.id || given === row.name;
}
