/**
 * The model gateway: programs inside call their model API here, without its key. The socket says which sandbox pays; the key comes
 * from the secrets, outside, and only for the host it is bound to.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Audit } from "../audit/audit.ts";
import { errorText, type Logger } from "../../base/host/log.ts";
import type { UserConfig } from "../../base/schema/config.ts";
import { VivError, type ErrorCode } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { MODEL_PATH } from "../../base/schema/model.ts";
import type { SecretInterceptor } from "../secrets/interceptor.ts";
import type { Destination, Secrets } from "../secrets/secrets.ts";
import type { Store } from "../../base/store/store.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { Accounts } from "./accounts.ts";
import { NO_TOKENS } from "./prices.ts";
import { modelEnvironment, providersOf, type KnownProvider } from "./providers.ts";
import { refuse } from "./refusal.ts";
import { readModelRequest, type ModelRequest } from "./request.ts";
import { passOn, pathOf, send, type Target } from "./upstream.ts";
import { UsageReader } from "./usage.ts";

export interface ModelParts {
  readonly store: Store;
  readonly audit: Audit;
  readonly secrets: Secrets;
  readonly interceptor: SecretInterceptor;
  readonly user: Pick<UserConfig, "models" | "prices" | "budgets">;
  readonly log: Logger;
  /** The sandbox is in use. */
  readonly touch: (sandbox: string) => void;
}

const ADDRESS = new RegExp(`^/${MODEL_PATH}/([a-z][a-z0-9-]{0,31})(/[^#]*)$`);

/** Their messages name files and settings of the machine. */
const HIDDEN: readonly ErrorCode[] = ["internal", "secret_unreadable", "store_corrupt", "store_busy", "disk_full"];

export class Models {
  readonly #parts: ModelParts;
  readonly #providers: ReadonlyMap<string, KnownProvider>;
  readonly #accounts: Accounts;
  /** Requests under way and their bytes, by sandbox. */
  readonly #busy = new Map<string, { requests: number; bytes: number }>();

  constructor(parts: ModelParts) {
    this.#parts = parts;
    this.#providers = providersOf(parts.user.models);
    this.#accounts = new Accounts(parts.store, parts.user.budgets, parts.user.prices);
  }

  /** Puts other secrets into requests of the proxy. */
  get interceptor(): SecretInterceptor {
    return this.#parts.interceptor;
  }

  /** What stands in settings files for the logins that are kept; `version` changes with them. */
  get standIns(): { find: (secret: string) => string | undefined; version: number } {
    const { secrets } = this.#parts;
    return { find: (secret) => secrets.placeholders()[secret], version: secrets.version };
  }

  /** Variables for programs inside. What the sandbox sets by itself is meant so, but for whom it trusts: that is completed. */
  environment(present: Readonly<Record<string, string>>): Record<string, string> {
    const { interceptor, secrets } = this.#parts;
    const offered = Object.entries({ ...interceptor.placeholders(), ...modelEnvironment(this.#providers.values(), secrets) });
    return { ...Object.fromEntries(offered.filter(([name]) => !(name in present))), ...interceptor.trust() };
  }

  /** Files that the variables name. */
  files(present: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    return this.#parts.interceptor.files(present);
  }

  /** Whether a request is for a model API, by its address alone. */
  isFor(address: string): boolean {
    return address.startsWith(`/${MODEL_PATH}/`);
  }

  /** Answers it, whatever happens. */
  async serve(sandbox: string, message: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, name = "", rest = ""] = ADDRESS.exec(message.url ?? "") ?? [];
    const provider = this.#providers.get(name);
    const shape = provider?.shape ?? (name === "anthropic" ? "anthropic" : "openai");
    const busy = this.#busy.get(sandbox) ?? { requests: 0, bytes: 0 };
    try {
      if (provider === undefined)
        throw new VivError("not_found", `There is no model API ${name} here. \`models\` in Vivarium's user config names them.`);
      if (busy.requests >= LIMITS.modelRequests)
        throw new VivError("rate_limited", `${busy.requests} requests of this sandbox are under way already.`);
      this.#busy.set(sandbox, busy);
      busy.requests += 1;
      let bytes = 0;
      const came = (more: number): void => {
        bytes += more;
        busy.bytes += more;
        if (busy.bytes > LIMITS.modelTogetherBytes) throw new VivError("rate_limited", "Requests of this sandbox are too large together.");
      };
      try {
        await this.#forward(provider, sandbox, await readModelRequest(message, shape, rest, came), response);
      } finally {
        busy.requests -= 1;
        busy.bytes -= bytes;
        if (busy.requests === 0) this.#busy.delete(sandbox);
      }
    } catch (error) {
      // The program inside has hung up and needs no answer.
      if (!response.destroyed) refuse(response, shape, this.#refusal(sandbox, error));
    }
  }

  async #forward(provider: KnownProvider, sandbox: string, request: ModelRequest, response: ServerResponse): Promise<void> {
    const row = await this.#parts.store.sandboxes.get(sandbox);
    if (row === undefined || row.removing) throw new VivError("not_running", "The sandbox is being removed.");
    this.#parts.touch(sandbox);
    const to = destinationOf(provider, request);
    const target = this.#target(provider, to);
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    if (response.destroyed) gone.abort();
    const refused = await this.#parts.secrets.permitNamed(sandbox, provider.secret, gone.signal);
    if (refused !== undefined) throw new VivError("denied", refused.reason, { remedy: refused.remedy });
    const { billed, hideUsage } = request;
    const booking = billed === undefined ? undefined : await this.#book(row, provider, billed);
    const usage = new UsageReader(provider.shape);
    const began = performance.now();
    let sent = false;
    let status: number | undefined;
    try {
      await this.#parts.secrets.recordUse(row, to, [provider.secret]);
      const answer = await send(target, request, { signal: gone.signal, onSent: () => (sent = true) });
      status = answer.statusCode ?? 500;
      await passOn(answer, response, { target, usage, hideUsage });
    } finally {
      this.#parts.touch(sandbox);
      // An error costs nothing. Whatever else was sent may have been carried out, however it ended.
      const counted = status === undefined ? sent : status < 300;
      // A program that hangs up early does not stop the provider from writing, and billing, the whole answer.
      const elapsedMs = status === undefined && gone.signal.aborted && billed?.streamed === false ? Infinity : performance.now() - began;
      if (billed !== undefined) await booking?.settle(counted ? usage.tokens(billed, elapsedMs) : NO_TOKENS);
    }
  }

  #target({ url, shape, secret }: KnownProvider, to: Destination): Target {
    const key = this.#key(secret, to);
    const kept = this.#parts.secrets.find(secret);
    const header = kept?.header ?? (shape === "anthropic" ? "x-api-key: {}" : "authorization: Bearer {}");
    const colon = header.indexOf(": ");
    const value = header.slice(colon + 2).replace("{}", () => key);
    return { url, shape, key, placeholder: kept?.placeholder ?? "", header: [header.slice(0, colon).toLowerCase(), value] };
  }

  /** Where the key is missing or bound to another host, the user has to set it; the request is not at fault. */
  #key(secret: string, to: Destination): string {
    try {
      return this.#parts.secrets.valueFor(secret, to);
    } catch (error) {
      if (!(error instanceof VivError) || error.code === "secret_unreadable") throw error;
      throw new VivError("config_invalid", `${error.message} ${error.remedy}`, { cause: error });
    }
  }

  async #book(row: SandboxRow, { name }: KnownProvider, billed: NonNullable<ModelRequest["billed"]>) {
    try {
      return await this.#accounts.book(row, name, billed);
    } catch (error) {
      if (!(error instanceof VivError) || (error.code !== "budget_exceeded" && error.code !== "rate_limited")) throw error;
      this.#parts.audit.note({
        actor: { kind: "agent", name: row.name },
        action: "model.request",
        target: `${name}/${billed.model}`,
        arguments: {},
        label: "DENIED",
        rule: "budgets",
        reason: error.message,
        sandbox: row.id,
        snapshot: null,
      });
      throw error;
    }
  }

  /** Programs inside are not told about faults of the server. */
  #refusal(sandbox: string, error: unknown): VivError {
    if (error instanceof VivError && !HIDDEN.includes(error.code)) return error;
    this.#parts.log.warn("a request to a model API", { sandbox, error: errorText(error) });
    return new VivError("internal", "The request could not be sent on.", { cause: error });
  }
}

function destinationOf({ url }: KnownProvider, { method, path }: ModelRequest): Destination {
  const protocol = url.protocol === "https:" ? "https" : "http";
  const port = url.port === "" ? { http: 80, https: 443 }[protocol] : Number(url.port);
  return { protocol, host: url.hostname.replace(/^\[|\]$/g, ""), port, method, path: pathOf(url, path).replace(/\?.*$/s, "") };
}
