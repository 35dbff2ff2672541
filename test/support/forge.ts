/** A small forge that speaks the routes of GitHub's REST API for repositories and pull requests, for one token. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface StoredPull {
  readonly number: number;
  readonly state: "open" | "closed";
  readonly title: string;
  readonly body: string;
  readonly head: { readonly ref: string; readonly label: string };
  readonly base: { readonly ref: string };
  readonly html_url: string;
}

type Reply = readonly [status: number, body: unknown, headers?: Readonly<Record<string, string>>];

export class TestForge {
  readonly token = "forge-token-0123456789abcdef";
  readonly pulls: StoredPull[] = [];
  /** Method and path of every request. */
  readonly requests: string[] = [];
  /** Answers instead of the routes, where it answers at all. */
  instead: ((method: string, path: string) => Reply | undefined) | undefined;
  readonly #server: Server;
  readonly #repository: string;
  readonly #hasBranch: (branch: string) => boolean;

  private constructor(repository: string, hasBranch: (branch: string) => boolean) {
    this.#repository = repository;
    this.#hasBranch = hasBranch;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  /** Of one repository, `owner/name`; `hasBranch` says which branches were pushed. */
  static async open(repository: string, hasBranch: (branch: string) => boolean): Promise<TestForge> {
    const forge = new TestForge(repository, hasBranch);
    await new Promise<void>((resolve) => forge.#server.listen(0, "127.0.0.1", resolve));
    return forge;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/api/v3`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? "/", "http://localhost");
    const method = request.method ?? "";
    this.requests.push(`${method} ${url.pathname}${url.search}`);
    const [status, body, headers = {}] =
      this.instead?.(method, url.pathname) ?? this.#route(method, url, request.headers.authorization, Buffer.concat(chunks).toString());
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  }

  #route(method: string, url: URL, authorization: string | undefined, body: string): Reply {
    if (authorization !== `Bearer ${this.token}`) return [401, { message: "Bad credentials" }];
    const root = `/api/v3/repos/${this.#repository}`;
    if (method === "GET" && url.pathname === root) return [200, { default_branch: "main" }];
    if (url.pathname !== `${root}/pulls`) return [404, { message: "Not Found" }];
    if (method === "GET") return [200, this.pulls.filter((pull) => isAskedFor(pull, url.searchParams))];
    return this.#create(JSON.parse(body) as { title: string; body: string; head: string; base: string });
  }

  #create({ title, body, head, base }: { title: string; body: string; head: string; base: string }): Reply {
    const [owner = ""] = this.#repository.split("/");
    const problem = (message: string): Reply => [422, { message: "Validation Failed", errors: [{ resource: "PullRequest", message }] }];
    if (!this.#hasBranch(head)) return problem("head is invalid");
    if (this.pulls.some((pull) => pull.state === "open" && pull.head.ref === head))
      return problem(`A pull request already exists for ${owner}:${head}.`);
    const number = this.pulls.length + 1;
    const address = `https://forge.example/${this.#repository}/pull/${number}`;
    const pull = { number, state: "open", title, body, head: { ref: head, label: `${owner}:${head}` }, base: { ref: base } } as const;
    this.pulls.push({ ...pull, html_url: address });
    return [201, this.pulls.at(-1)];
  }
}

function isAskedFor(pull: StoredPull, query: URLSearchParams): boolean {
  return (
    pull.state === query.get("state") && pull.head.label === query.get("head") && pull.base.ref === (query.get("base") ?? pull.base.ref)
  );
}
