/** A git server over HTTP or HTTPS: git's own http-backend, called as CGI. It takes pushes from a client that has the login. */
import { spawn } from "node:child_process";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecure } from "node:https";
import type { AddressInfo } from "node:net";

interface TlsOptions {
  readonly key: Buffer;
  readonly cert: Buffer;
}

export class GitHttp {
  readonly #server: Server;
  /** Authorization headers that came. */
  readonly logins: string[] = [];

  private constructor(folder: string, login: string | undefined, tls: TlsOptions | undefined) {
    const answer = (request: IncomingMessage, response: ServerResponse): void => {
      const given = request.headers.authorization;
      if (given !== undefined) this.logins.push(given);
      if (login !== undefined && given !== `Basic ${Buffer.from(login).toString("base64")}`) {
        response.writeHead(401, { "www-authenticate": 'Basic realm="test"' }).end();
        return;
      }
      serve(folder, request, response);
    };
    this.#server = tls === undefined ? createServer(answer) : createSecure(tls, answer);
  }

  /** Serves every repository below the folder; `login` is `user:password`. With a key and a certificate it speaks HTTPS. */
  static async open(folder: string, login?: string, tls?: TlsOptions): Promise<GitHttp> {
    const server = new GitHttp(folder, login, tls);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function serve(folder: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "http://localhost");
  const backend = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env["PATH"] ?? "",
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: "1",
      GIT_CONFIG_COUNT: "2",
      GIT_CONFIG_KEY_0: "safe.directory",
      GIT_CONFIG_VALUE_0: "*",
      GIT_CONFIG_KEY_1: "http.receivepack",
      GIT_CONFIG_VALUE_1: "true",
      REQUEST_METHOD: request.method ?? "GET",
      PATH_INFO: decodeURIComponent(url.pathname),
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
      GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
      REMOTE_USER: "test",
      REMOTE_ADDR: "127.0.0.1",
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  request.pipe(backend.stdin);
  backend.stdin.on("error", () => request.resume());
  const chunks: Buffer[] = [];
  backend.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  backend.once("close", () => {
    const answer = Buffer.concat(chunks);
    const end = answer.indexOf("\r\n\r\n");
    const headers = answer
      .toString("latin1", 0, Math.max(end, 0))
      .split("\r\n")
      .map((line) => line.split(": ", 2) as [string, string]);
    const status = headers.find(([name]) => name.toLowerCase() === "status")?.[1] ?? "200";
    const sent = headers.filter(([name]) => name !== "" && name.toLowerCase() !== "status");
    response.writeHead(end < 0 ? 500 : Number.parseInt(status, 10), Object.fromEntries(sent)).end(answer.subarray(end + 4));
  });
}
