/**
 * The model gateway: programs inside call their model API here, without its key. The socket says which sandbox pays; the key comes
 * from the secrets, outside, and only for the host it is bound to.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Audit } from "../audit/audit.ts";
import { errorText, type Logger } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { MODEL_PATH, type BudgetsConfig, type ModelShape } from "../../base/schema/model.ts";
import type { SecretInterceptor } from "../secrets/interceptor.ts";
import type { Destination, Secrets } from "../secrets/secrets.ts";
import type { Store } from "../../base/store/store.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { Accounts, type Payer } from "./accounts.ts";
import { questionRequest, textIn, type ModelQuestion } from "./completion.ts";
import { embeddingRequest, vectorsIn } from "./embeddings.ts";
import { missing, type Ask, type Missing } from "./offered.ts";
import { hasOwnPrice, NO_TOKENS } from "./prices.ts";
import { modelEnvironment, modelsInside, renewalOf, usualShape, type KnownProvider } from "./providers.ts";
import { Refusal, refuse } from "./refusal.ts";
import { RefusalRecords } from "./refusal-records.ts";
import { readModelRequest, type MaximumCost, type ModelRequest } from "./request.ts";
import type { ModelAnswer } from "./retry-after.ts";
import type { ModelSettings } from "./settings.ts";
import { passOn, pathOf, readAnswer, readText, send, type Target } from "./upstream.ts";
import { UsageReader } from "./usage.ts";

export interface ModelParts {
  readonly store: Store;
  readonly audit: Audit;
  readonly secrets: Secrets;
  readonly interceptor: SecretInterceptor;
  readonly settings: ModelSettings;
  readonly log: Logger;
  /** The sandbox is in use. */
  readonly touch: (sandbox: string) => void;
}

/** Who asked: where the answer goes, and what hears of it. */
interface Asker {
  readonly response: ServerResponse;
  readonly onAnswer: (answer: ModelAnswer) => void;
}

/** How a key is sent where its secret names no header. */
const KEY_HEADERS: Readonly<Record<ModelShape, string>> = {
  anthropic: "x-api-key: {}",
  openai: "authorization: Bearer {}",
  gemini: "x-goog-api-key: {}",
};
/** Anthropic takes the token of a subscription only with this in `anthropic-beta`. */
const SUBSCRIPTION_BETA = "oauth-2025-04-20";
const ADDRESS = new RegExp(`^/${MODEL_PATH}/([a-z][a-z0-9-]{0,31})(/[^#]*)$`);

/** Models that are known to be there. */
const MOST_OFFERED = 256;

/** Who pays for what the server asks for itself. */
const SERVER = { id: "server", name: "server", project: "", labels: {} };

export class Models {
  readonly #parts: ModelParts;
  readonly #accounts: Accounts;
  readonly #refusals: RefusalRecords;
  /** Requests under way and their bytes, by sandbox. */
  readonly #busy = new Map<string, { requests: number; bytes: number }>();
  /** When a provider was last seen to have a model, or not to say. */
  readonly #offered = new Map<string, number>();

  constructor(parts: ModelParts) {
    this.#parts = parts;
    this.#accounts = new Accounts(parts.store, parts.settings);
    this.#refusals = new RefusalRecords(parts);
  }

  /** What may be spent, as the user's config says now. */
  get budgets(): BudgetsConfig {
    return this.#parts.settings.budgets;
  }

  /** Requests of a sandbox that are under way. */
  openRequests(sandbox: string): number {
    return this.#busy.get(sandbox)?.requests ?? 0;
  }

  /** Why a program ended, without what it puts around a refusal of the gateway. */
  plainly(sandbox: string, words: string): string {
    return this.#refusals.plainly(sandbox, words);
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
    const { interceptor, secrets, settings } = this.#parts;
    const offered = Object.entries({ ...interceptor.placeholders(), ...modelEnvironment(settings.providers.values(), secrets) });
    return { ...Object.fromEntries(offered.filter(([name]) => !(name in present))), ...interceptor.trust() };
  }

  /** The same as the variables say, by name. */
  inside(): Record<string, { url: string; key: string }> {
    return modelsInside(this.#parts.settings.providers.values(), this.#parts.secrets);
  }

  /** Files that the variables name. */
  files(present: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    return this.#parts.interceptor.files(present);
  }

  /** Whether a request is for a model API, by its address alone. */
  isFor(address: string): boolean {
    return address.startsWith(`/${MODEL_PATH}/`);
  }

  /** Answers it, whatever happens. `onAnswer` hears of a provider's answer that is passed on, to a request that costs something. */
  async serve(
    sandbox: string,
    message: IncomingMessage,
    response: ServerResponse,
    onAnswer: (answer: ModelAnswer) => void = () => undefined,
  ): Promise<void> {
    const [, name = "", rest = ""] = ADDRESS.exec(message.url ?? "") ?? [];
    const provider = this.#parts.settings.providers.get(name);
    const shape = provider?.shape ?? usualShape(name);
    const busy = this.#busy.get(sandbox) ?? { requests: 0, bytes: 0 };
    try {
      if (provider === undefined)
        throw new Refusal("no_such_provider", `There is no model API ${name} here. \`models\` in Vivarium's user config names them.`);
      if (busy.requests >= LIMITS.modelRequests)
        throw new Refusal("too_many_requests", `${busy.requests} requests of this sandbox are under way already.`);
      this.#busy.set(sandbox, busy);
      busy.requests += 1;
      let bytes = 0;
      const came = (more: number): void => {
        bytes += more;
        busy.bytes += more;
        if (busy.bytes > LIMITS.modelTogetherBytes)
          throw new Refusal("too_many_requests", "Requests of this sandbox are too large together.");
      };
      try {
        await this.#forward(provider, sandbox, await readModelRequest(message, shape, rest, came), { response, onAnswer });
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

  /** Vectors of texts, for the server itself. The user's config names provider and model; budgets of the day hold here, too. */
  async embeddings(name: string, model: string, texts: readonly string[], signal: AbortSignal): Promise<number[][]> {
    const provider = this.#parts.settings.providers.get(name);
    if (provider?.shape !== "openai")
      throw new VivError("config_invalid", `memory.embeddings names ${name}, but models has no such API in the shape openai.`);
    const answer = await this.#own(SERVER, provider, embeddingRequest(model, texts), signal);
    return vectorsIn(answer, texts.length);
  }

  /** A short text of a model about a run, for the server itself. The sandbox of the run pays, within its budgets. */
  async ask(
    payer: Payer,
    { provider: name, model }: { readonly provider: string; readonly model: string },
    question: ModelQuestion,
    signal: AbortSignal,
  ): Promise<string> {
    const provider = this.#parts.settings.providers.get(name);
    if (provider === undefined)
      throw new VivError("config_invalid", `The user's config wants a model of ${name}, but models has no such API.`);
    return textIn(provider.shape, await this.#own(payer, provider, questionRequest(provider.shape, model, question), signal));
  }

  /** What is known of a model that an API does not have; undefined where it has it, or does not say so in time. */
  async missing(name: string, model: string): Promise<Missing | undefined> {
    const { providers, prices } = this.#parts.settings;
    const provider = providers.get(name);
    if (provider === undefined || hasOwnPrice(model, prices)) return undefined;
    const [key, now] = [`${provider.url.href} ${provider.secret} ${model}`, performance.now()];
    if ((this.#offered.get(key) ?? -Infinity) > now - LIMITS.modelOfferedMs) return undefined;
    const signal = AbortSignal.timeout(LIMITS.modelLookMs);
    const lacking = await missing(provider.shape, model, (request) => this.#look(provider, request, signal));
    if (lacking !== undefined) return lacking;
    if (this.#offered.size >= MOST_OFFERED) this.#offered.clear();
    this.#offered.set(key, now);
    return undefined;
  }

  /** Asks what costs nothing. */
  async #look(provider: KnownProvider, request: ModelRequest, signal: AbortSignal): ReturnType<Ask> {
    try {
      const to = destinationOf(provider, request);
      const target = this.#target(provider, to);
      await this.#parts.secrets.recordOwnUse(to, provider.secret);
      const answer = await send(target, request, { signal, onSent: () => undefined });
      return { status: answer.statusCode ?? 502, text: await readText(answer, target) };
    } catch (error) {
      this.#parts.log.info("a model API was not asked which models it has", { provider: provider.name, error: errorText(error) });
      return undefined;
    }
  }

  /** A request of the server itself, and its whole answer. */
  async #own(
    payer: Payer,
    provider: KnownProvider,
    request: ModelRequest & { readonly billed: MaximumCost },
    signal: AbortSignal,
  ): Promise<unknown> {
    const to = destinationOf(provider, request);
    const target = this.#target(provider, to);
    const booking = await this.#accounts.book(payer, provider, request.billed);
    const usage = new UsageReader(provider.shape);
    const began = performance.now();
    let counted = false;
    try {
      await this.#parts.secrets.recordOwnUse(to, provider.secret);
      // What was sent and not answered may have been carried out; a refusal costs nothing.
      const answer = await send(target, request, { signal, onSent: () => (counted = true) });
      counted = (answer.statusCode ?? 500) < 300;
      return await readAnswer(answer, { target, usage, model: request.billed.model });
    } finally {
      // An answer that was not waited for is written, and billed, all the same.
      const elapsedMs = signal.aborted ? Infinity : performance.now() - began;
      await booking.settle(counted ? usage.tokens(request.billed, elapsedMs) : NO_TOKENS);
    }
  }

  async #forward(provider: KnownProvider, sandbox: string, request: ModelRequest, to: Asker): Promise<void> {
    const row = await this.#parts.store.sandboxes.get(sandbox);
    if (row === undefined || row.removing) throw new Refusal("sandbox_removed", "The sandbox is being removed.");
    this.#parts.touch(sandbox);
    try {
      await this.#exchange(provider, row, request, to);
    } catch (error) {
      if (error instanceof Refusal) await this.#refusals.add(row, provider.name, request.billed?.model, error);
      throw error;
    }
  }

  async #exchange(provider: KnownProvider, row: SandboxRow, request: ModelRequest, { response, onAnswer }: Asker): Promise<void> {
    const sandbox = row.id;
    const to = destinationOf(provider, request);
    const target = this.#target(provider, to);
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    if (response.destroyed) gone.abort();
    const refused = await this.#parts.secrets.permitNamed(sandbox, provider.secret, gone.signal);
    if (refused !== undefined)
      throw new Refusal(refused.code === "secret_held" ? "secret_held" : "secret_denied", `${refused.reason} ${refused.remedy}`);
    const { billed, hideUsage } = request;
    const booking = billed === undefined ? undefined : await this.#accounts.book(row, provider, billed);
    const usage = new UsageReader(provider.shape);
    const began = performance.now();
    let sent = false;
    let status: number | undefined;
    try {
      await this.#parts.secrets.recordUse(row, to, [provider.secret]);
      const answer = await send(target, request, { signal: gone.signal, onSent: () => (sent = true) });
      status = answer.statusCode ?? 500;
      const heard = billed === undefined ? () => undefined : onAnswer;
      await passOn(answer, response, { target, usage, hideUsage, model: billed?.model, onAnswer: heard });
    } finally {
      this.#parts.touch(sandbox);
      // An error costs nothing. Whatever else was sent may have been carried out, however it ended.
      const counted = status === undefined ? sent : status < 300;
      // A program that hangs up early does not stop the provider from writing, and billing, the whole answer.
      const elapsedMs = status === undefined && gone.signal.aborted && billed?.streamed === false ? Infinity : performance.now() - began;
      if (billed !== undefined) await booking?.settle(counted ? usage.tokens(billed, elapsedMs) : NO_TOKENS);
    }
  }

  #target(provider: KnownProvider, to: Destination): Target {
    const { name, url, shape, secret } = provider;
    const key = this.#key(provider, to);
    const kept = this.#parts.secrets.find(secret);
    const isToken = shape === "anthropic" && kept?.kind === "subscription";
    const header = kept?.header ?? (isToken ? "authorization: Bearer {}" : KEY_HEADERS[shape]);
    const colon = header.indexOf(": ");
    const value = header.slice(colon + 2).replace("{}", () => key);
    return {
      name,
      url,
      shape,
      key,
      placeholder: kept?.placeholder ?? "",
      header: [header.slice(0, colon).toLowerCase(), value],
      beta: isToken ? SUBSCRIPTION_BETA : undefined,
      refusedLogin: `The login of ${name} was refused: run \`${renewalOf(provider)}\`.`,
    };
  }

  /** Where the key is missing or bound to another host, the user has to set it; the request is not at fault. */
  #key(provider: KnownProvider, to: Destination): string {
    const { secret } = provider;
    try {
      return this.#parts.secrets.valueFor(secret, to);
    } catch (error) {
      if (!(error instanceof VivError)) throw error;
      // Why it can't be opened names files of the machine.
      const reason = error.code === "secret_unreadable" ? `The secret ${secret} can't be opened.` : error.message;
      throw new Refusal("no_login", `${reason} Run \`${renewalOf(provider)}\`.`, error);
    }
  }

  /** Programs inside are not told about faults of the server. */
  #refusal(sandbox: string, error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    this.#parts.log.warn("a request to a model API", { sandbox, error: errorText(error) });
    return new Refusal("server_fault", "The request could not be sent on.", error);
  }
}

function destinationOf({ url }: KnownProvider, { method, path }: ModelRequest): Destination {
  const protocol = url.protocol === "https:" ? "https" : "http";
  const port = url.port === "" ? { http: 80, https: 443 }[protocol] : Number(url.port);
  return { protocol, host: url.hostname.replace(/^\[|\]$/g, ""), port, method, path: pathOf(url, path).replace(/\?.*$/s, "") };
}
