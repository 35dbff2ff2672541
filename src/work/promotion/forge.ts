/** Pull requests on GitHub, or any forge that speaks its REST API. The token goes to the configured address alone, and into no message. */
import { VivError } from "../../base/schema/errors.ts";
import { UNSEEN } from "../../base/schema/unseen.ts";
import type { ForgeRepository } from "./remote.ts";

export interface Forge {
  /** Where its API begins, such as https://api.github.com. */
  readonly url: string;
  readonly token: string;
  /** Host of its repositories' addresses, where it is not that of the API. */
  readonly host?: string;
}

export interface PullRequestOptions {
  readonly forge: Forge;
  readonly repository: ForgeRepository;
  readonly branch: string;
  readonly title: string;
  readonly body: string;
  /** The branch it goes into; the repository's default branch if left out. */
  readonly base?: string;
  readonly draft?: boolean;
  readonly signal?: AbortSignal;
}

export interface PullRequest {
  readonly number: number;
  readonly url: string;
  readonly base: string;
  /** False where the branch had an open one. */
  readonly created: boolean;
}

const TIMEOUT_MS = 30_000;
const MOST_ANSWER_BYTES = 4 * 1024 ** 2;
const MOST_BODY_CHARACTERS = 60_000;
const HIDDEN = new RegExp(`[${UNSEEN}]+`, "gv");
const LOOPBACK = ["127.0.0.1", "[::1]", "localhost"];

/** The one that is open for the branch, or a new one. */
export async function openPullRequest(options: PullRequestOptions): Promise<PullRequest> {
  const { repository, branch } = options;
  const client = new ForgeClient(options.forge, options.signal);
  client.requireHost(repository.host);
  const path = `/repos/${encodeURIComponent(repository.owner)}/${encodeURIComponent(repository.name)}`;
  const base = options.base ?? readText(await client.get(path), "default_branch");
  if (base === branch)
    throw new VivError("invalid_input", `${branch} can't be merged into itself.`, { remedy: "Choose another base branch." });
  const found = await findOpen(client, path, repository.owner, branch, base);
  if (found !== undefined) return found;
  const body = {
    title: options.title,
    body: options.body.slice(0, MOST_BODY_CHARACTERS),
    head: branch,
    base,
    draft: options.draft ?? false,
  };
  const made = await client.post(`${path}/pulls`, body);
  if (made.status === 422) {
    // Another program may have opened it since it was looked for.
    const other = await findOpen(client, path, repository.owner, branch, base);
    if (other !== undefined) return other;
    throw client.failure(made);
  }
  if (made.status !== 201) throw client.failure(made);
  return { ...readPullRequest(made.json), base, created: true };
}

async function findOpen(client: ForgeClient, path: string, owner: string, branch: string, base: string): Promise<PullRequest | undefined> {
  const query = new URLSearchParams({ head: `${owner}:${branch}`, state: "open", base });
  const list = await client.get(`${path}/pulls?${query.toString()}`);
  // A forge that knows no such filter lists others, too.
  const own = Array.isArray(list) ? list.find((each) => readHead(each) === branch) : undefined;
  return own === undefined ? undefined : { ...readPullRequest(own), base, created: false };
}

function readHead(value: unknown): unknown {
  const head = fieldOf(value, "head");
  return fieldOf(head, "ref");
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function readText(value: unknown, name: string): string {
  const field = fieldOf(value, name);
  if (typeof field === "string" && field !== "") return field;
  throw new VivError("forge_failed", `The forge's answer has no ${name}.`);
}

function readPullRequest(value: unknown): { number: number; url: string } {
  const number = fieldOf(value, "number");
  const url = URL.parse(readText(value, "html_url"));
  if (typeof number !== "number" || (url?.protocol !== "https:" && url?.protocol !== "http:"))
    throw new VivError("forge_failed", "The forge's answer is no pull request.");
  return { number, url: url.href };
}

interface Answer {
  readonly status: number;
  readonly json: unknown;
}

class ForgeClient {
  readonly #base: URL;
  readonly #token: string;
  readonly #host: string | undefined;
  readonly #signal: AbortSignal | undefined;

  constructor({ url, token, host }: Forge, signal?: AbortSignal) {
    const base = URL.parse(url);
    const safe = base?.protocol === "https:" || (base?.protocol === "http:" && LOOPBACK.includes(base.hostname));
    if (base === null || !safe || base.username !== "" || base.password !== "" || base.search !== "" || base.hash !== "")
      throw new VivError("config_invalid", "The forge's address must begin with https:// and hold no login.");
    if (!/^[\x21-\x7e]+$/.test(token))
      throw new VivError("config_invalid", "The forge's token is empty or holds characters that no token has.");
    this.#base = base;
    this.#token = token;
    this.#host = host?.toLowerCase();
    this.#signal = signal;
  }

  /** A pull request for a repository of another host would meet a stranger's of the same name. */
  requireHost(host: string): void {
    const own = this.#base.hostname;
    const hosts = this.#host === undefined ? [own, own.replace(/^api\./, ""), own.replace(/^api\./, "ssh.")] : [this.#host];
    if (hosts.includes(host)) return;
    throw new VivError(
      "config_invalid",
      `The remote is on ${host}, and the configured forge is ${hosts.at(-1) === own ? own : (hosts[1] ?? own)}.`,
      {
        remedy: "Push to a remote of that forge, or correct `forge` in the user config.",
      },
    );
  }

  async get(path: string): Promise<unknown> {
    const answer = await this.#send("GET", path);
    if (answer.status !== 200) throw this.failure(answer);
    return answer.json;
  }

  async post(path: string, body: object): Promise<Answer> {
    return this.#send("POST", path, JSON.stringify(body));
  }

  async #send(method: string, path: string, body?: string): Promise<Answer> {
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signal = this.#signal === undefined ? timeout : AbortSignal.any([timeout, this.#signal]);
    try {
      const response = await fetch(`${this.#base.href.replace(/\/$/, "")}${path}`, {
        method,
        signal,
        // A redirect would carry the token to an address that the user did not configure.
        redirect: "error",
        headers: {
          accept: "application/vnd.github+json",
          authorization: `Bearer ${this.#token}`,
          "user-agent": "vivarium",
          "x-github-api-version": "2022-11-28",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body }),
      });
      return { status: response.status, json: parse(await readBounded(response)) };
    } catch (error) {
      if (error instanceof VivError) throw error;
      if (this.#signal?.aborted === true) throw new VivError("cancelled", "The pull request was cancelled.");
      if (timeout.aborted) throw new VivError("forge_failed", `The forge did not answer in ${TIMEOUT_MS / 1000} s.`);
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
      throw new VivError("forge_failed", `The forge can't be reached: ${this.#clean(cause)}.`);
    }
  }

  failure({ status, json }: Answer): VivError {
    const said = [fieldOf(json, "message"), ...reasons(json)].filter((part) => typeof part === "string" && part !== "");
    const why = said.length === 0 ? "" : `: ${this.#clean(said.join("; "))}`;
    const remedies: Readonly<Record<number, string>> = {
      401: "The token is wrong or has run out: put a new one into `forge` of the user config.",
      403: "The token may not do this, or too much was asked; it needs to write pull requests of this repository.",
      404: "The repository is not there, or the token may not see it.",
      422: "Check that the branch is pushed and that the base branch exists.",
    };
    const remedy = remedies[status];
    return new VivError("forge_failed", `The forge answered ${status}${why.replace(/\.$/, "")}.`, remedy === undefined ? {} : { remedy });
  }

  /** An answer of the forge may repeat the token that it was sent. */
  #clean(text: string): string {
    return text.replaceAll(this.#token, "[token]").replace(HIDDEN, " ").slice(0, 300);
  }
}

function reasons(json: unknown): unknown[] {
  const errors = fieldOf(json, "errors");
  return Array.isArray(errors) ? errors.slice(0, 5).map((each) => fieldOf(each, "message")) : [];
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MOST_ANSWER_BYTES) throw new VivError("forge_failed", "The forge's answer is too long.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // An answer that is no JSON, such as a proxy's page, is reported by its status alone.
    return null;
  }
}
