/** Answers what sandboxes ask: finds the contract, holds the rates, knows who is who. */
import { z } from "zod";
import type { Actions } from "../../rules/actions/actions.ts";
import { shownPolicy } from "../../rules/actions/policy-of.ts";
import type { Approvals } from "../../rules/approvals/approvals.ts";
import type { Audit } from "../../rules/audit/audit.ts";
import type { ModelAnswer } from "../../rules/models/retry-after.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import { staleness } from "../../sandbox/changes/status.ts";
import { VivError } from "../../base/schema/errors.ts";
import {
  GATEWAY_CONTRACTS,
  GATEWAY_RATES,
  type GatewayContract,
  type GatewayRate,
  type GatewayRequestName,
  type Rate,
} from "../../base/schema/gateway-contracts.ts";
import { pathFields } from "../../base/schema/path-template.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Reviews } from "../../work/reviews/reviews.ts";
import type { RunGateway } from "../../work/agents/run-gateway.ts";
import { about } from "./about.ts";
import { asTool, decideInside } from "./actions.ts";
import { Backlog } from "./backlog.ts";
import type { Call, Handlers } from "./call.ts";
import { Conversations } from "./conversations.ts";
import { Decisions } from "./decisions.ts";
import { DroppedRequests } from "./dropped-requests.ts";
import type { Routes } from "./gateway.ts";
import { parse, type Reply, type Request } from "./http.ts";
import { OwnSnapshots } from "./own-snapshots.ts";
import { ownStatus } from "./own-status.ts";
import { Questions } from "./questions.ts";
import { Rates } from "./rates.ts";
import { Resources } from "./resources.ts";
import { runHandlers } from "./run-requests.ts";

export interface GatewayParts {
  readonly parts: Pick<Parts, "store" | "backends" | "user" | "state" | "log" | "live">;
  readonly sandboxes: Sandboxes;
  readonly audit: Audit;
  readonly approvals: Approvals;
  readonly actions: Actions;
  readonly runs: RunGateway;
  /** Reviews that agents ask for. */
  readonly reviews: Pick<Reviews, "offered" | "ask">;
}

/** A contract that a request fits, with what stands in its path. */
interface Match {
  readonly name: GatewayRequestName;
  readonly path: Readonly<Record<string, string>>;
}

const NAMES = Object.keys(GATEWAY_CONTRACTS) as GatewayRequestName[];

/** Status of an answer that a person has to give first. */
const NOT_YET = 202;

export class GatewayRoutes implements Routes {
  readonly #parts: GatewayParts;
  readonly #handlers: Handlers;
  readonly #rates = new Rates(GATEWAY_RATES);
  readonly #dropped: DroppedRequests;
  readonly #conversations: Conversations;
  readonly #resources: Resources;

  constructor(parts: GatewayParts) {
    this.#parts = parts;
    this.#dropped = new DroppedRequests(parts.audit);
    this.#conversations = new Conversations(parts);
    this.#resources = new Resources(parts);
    this.#handlers = this.#table();
  }

  #table(): Handlers {
    const { parts, audit, approvals, actions, runs, reviews } = this.#parts;
    const [talk, decisions, questions] = [this.#conversations, new Decisions(audit), new Questions(approvals, runs)];
    const [backlog, snapshots] = [new Backlog(parts, audit), new OwnSnapshots({ ...this.#parts, log: parts.log })];
    const askSibling: Handlers["askSibling"] = (call) =>
      asTool(actions, call.row, { tool: "coordinate_sibling", argument: call.path.to }, () => talk.coordinate(call));
    return {
      describeSelf: (call) => about(parts, reviews, call),
      reportDecision: (call) => decisions.report(call),
      listDecisions: (call) => decisions.list(call),
      decideAction: (call) => decideInside(actions, call),
      readPolicy: async ({ row }) => ({ body: shownPolicy(await actions.policy(row), (await runs.find(row.id))?.mostSteps) }),
      askSibling,
      askSiblingAsSelf: askSibling,
      readMessages: (call) => talk.messages(call),
      answerMessage: (call) => talk.answer(call),
      readConversation: (call) => talk.read(call),
      requestResources: (call) => asTool(actions, call.row, { tool: "request_resources" }, () => this.#resources.request(call)),
      readStaleness: async ({ row }) => ({ body: await staleness(parts, row) }),
      askPerson: (call) => questions.ask(call),
      readQuestion: (call) => questions.look(call),
      readStatus: (call) => ownStatus(this.#parts, call),
      createTask: (call) => asTool(actions, call.row, { tool: "create_task" }, () => backlog.create(call)),
      listTasks: (call) => backlog.list(call),
      takeSnapshot: (call) => asTool(actions, call.row, { tool: "snapshot" }, () => snapshots.take(call)),
      listSnapshots: (call) => snapshots.list(call),
      rollBack: (call) => asTool(actions, call.row, { tool: "roll_back", argument: call.input.snapshot }, () => snapshots.rollBack(call)),
      ...runHandlers(runs),
    };
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
    this.#dropped.record(sandbox);
    this.#rates.forget(sandbox);
  }

  admit(sandbox: string): void {
    this.#hold(sandbox, "request");
  }

  modelAnswered(sandbox: string, answer: ModelAnswer): void {
    this.#parts.runs.modelAnswered(sandbox, answer);
  }

  async answer(sandbox: string, request: Request): Promise<Reply> {
    const row = await this.#parts.parts.store.sandboxes.get(sandbox);
    if (row === undefined || row.removing) throw new VivError("not_running", "The sandbox is being removed.");
    const match = find(request);
    if (match === undefined || !isOwn(row, match.path["id"]))
      throw new VivError("not_found", `There is no ${request.method} /${request.path.join("/").slice(0, 200)} for this sandbox.`, {
        remedy: "Use `self` or the sandbox's own id; docs/GATEWAY.md has the routes.",
      });
    return this.#handle(match.name, match.path, row, request);
  }

  async #handle<Name extends GatewayRequestName>(name: Name, path: Match["path"], row: SandboxRow, request: Request): Promise<Reply> {
    const contract: GatewayContract = GATEWAY_CONTRACTS[name];
    if (contract.rate !== undefined) this.#hold(row.id, contract.rate, request.body);
    refuseLarge(contract, request.bodyBytes);
    this.#parts.parts.live.touch(row.id);
    const input = parse(contract.input, contract.method === "get" ? request.query : request.body);
    const reply = await this.#handlers[name]({ row, path, input, signal: request.signal } as Call<Name>);
    // Parsing the answer leaves out what the contract does not name: the sandbox sees nothing else.
    if ("waits" in reply) return { status: NOT_YET, body: (contract.waits ?? z.never()).parse(reply.waits) };
    return { status: contract.status, body: contract.output.parse(reply.body) };
  }

  #hold(sandbox: string, kind: GatewayRate, body?: unknown): void {
    const waitMs = this.#rates.take(sandbox, kind, weightOf(GATEWAY_RATES[kind], body));
    if (waitMs === 0) return;
    this.#dropped.count(sandbox, kind);
    throw new VivError("rate_limited", `Too many requests of this kind; the next one in ${waitMs} ms.`);
  }
}

function weightOf({ charactersEach, itemsOf }: Rate, body: unknown): number {
  if (charactersEach !== undefined) return 1 + Math.floor((JSON.stringify(body) ?? "").length / charactersEach);
  const items: unknown = itemsOf === undefined ? undefined : (body as Readonly<Record<string, unknown>> | null | undefined)?.[itemsOf];
  return Array.isArray(items) ? Math.max(1, items.length) : 1;
}

function refuseLarge({ bodyBytes }: GatewayContract, sent: number): void {
  if (bodyBytes !== undefined && sent > bodyBytes)
    throw new VivError("too_large", `A body of this kind has at most ${bodyBytes} bytes.`, { remedy: "Send less." });
}

function find(request: Request): Match | undefined {
  for (const name of NAMES) {
    const { method, path } = GATEWAY_CONTRACTS[name];
    const fields = method.toUpperCase() === request.method ? pathFields(path, request.path) : undefined;
    if (fields !== undefined) return { name, path: fields };
  }
  return undefined;
}

/** Routes without it name another sandbox on purpose. */
function isOwn(row: SandboxRow, given: string | undefined): boolean {
  return given === undefined || given === "self" || given === row.id || given === row.name;
}
