/** What all handles of one `Vivarium` share: its client, made at the first call. */
import type { ApiClient } from "../client/api-client.ts";
import { VivError } from "../../base/schema/errors.ts";
import { cancelled, VivariumError } from "./error.ts";
import type { Machine, Platform } from "./platform.ts";
import type { Operations } from "./types/operations.ts";

/** The connection was never made, so the request was not sent. */
const NOT_SENT = new Set(["ECONNREFUSED", "ENOENT"]);

function wasNotSent(error: unknown): boolean {
  if (!(error instanceof VivError) || error.code !== "server_unreachable") return false;
  const { cause } = error;
  return cause instanceof Error && "code" in cause && NOT_SENT.has(String(cause.code));
}

export class Connection {
  readonly platform: Platform;
  #client: Promise<ApiClient> | undefined;

  constructor(platform: Platform) {
    this.platform = platform;
  }

  client(): Promise<ApiClient> {
    if (this.#client === undefined) {
      const client = this.platform.connect();
      this.#client = client;
      client.catch(() => {
        if (this.#client === client) this.#client = undefined;
      });
    }
    return this.#client;
  }

  /** Does something with the client. Where the server has gone meanwhile, it is found or started again. */
  async use<Result>(work: (client: ApiClient) => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    if (signal?.aborted === true) throw cancelled(signal);
    const client = await this.client();
    try {
      return await work(client);
    } catch (error) {
      if (!wasNotSent(error)) throw error;
    }
    client.close();
    this.#client = undefined;
    return work(await this.client());
  }

  call<Name extends keyof Operations>(
    name: Name,
    input: Operations[Name]["input"],
    signal?: AbortSignal,
  ): Promise<Operations[Name]["output"]> {
    // A test holds that the plain types are those of the contracts.
    return this.use((client) => client.call(name, input as never, signal) as Promise<Operations[Name]["output"]>, signal);
  }

  /** Of a call that needs files or ports around the program. */
  async machine(what: string): Promise<Machine> {
    const { machine } = this.platform;
    if (machine !== undefined) {
      // It uses the client that is made here.
      await this.client();
      return machine;
    }
    throw new VivariumError("unsupported", `${what} needs Node.`, { remedy: "Use the streams of `files`, and `port().fetch`." });
  }

  close(): void {
    this.#client?.then((client) => client.close()).catch(() => undefined);
    this.#client = undefined;
  }
}

/** Options that the SDK itself takes are checked here; the server checks those that go to it. */
export function refuseUnknown(method: string, options: object, known: readonly string[]): void {
  const other = Object.keys(options).find((name) => !known.includes(name));
  if (other === undefined) return;
  throw new VivariumError("invalid_input", `${method} has no option "${other}".`, {
    remedy: known.length === 0 ? "It takes none." : `It takes ${known.join(", ")}.`,
  });
}

/** An option that every call takes. */
export interface CallOptions {
  /** Cancels the call, which then rejects with the code `cancelled`. */
  readonly signal?: AbortSignal | undefined;
}
