/** A host that a secret is bound to, with the proxy that opens TLS to it, both in the test's own process. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSecure } from "node:https";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { connect, getCACertificates, setDefaultCACertificates, type TLSSocket } from "node:tls";
import type { Logger } from "../../src/base/host/log.ts";
import { Approvals } from "../../src/rules/approvals/approvals.ts";
import { Audit } from "../../src/rules/audit/audit.ts";
import type { EffectRecords } from "../../src/rules/network/effects.ts";
import { SecretInterceptor } from "../../src/rules/secrets/interceptor.ts";
import { SealingKey } from "../../src/rules/secrets/sealing-key.ts";
import type { Secret, SecretBinding } from "../../src/base/schema/secret.ts";
import { Secrets } from "../../src/rules/secrets/secrets.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import { ProxyLab } from "./proxy-lab.ts";

export interface HeardRequest {
  readonly line: string;
  /** Names and values in turn, as they came. */
  readonly raw: readonly string[];
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** Makes what records effects, with what the host has by then. */
type Effects = (parts: { readonly store: Store; readonly approvals: Approvals; readonly log: Logger }) => EffectRecords;

const quiet: Logger = { info: () => undefined, warn: () => undefined };

const ADDRESS = "127.0.0.2";

export class BoundHost {
  readonly place: string;
  readonly heard: HeardRequest[] = [];
  readonly store: Store;
  readonly audit: Audit;
  readonly approvals: Approvals;
  /** File of the token that answers questions. */
  readonly approverToken: string;
  readonly secrets: Secrets;
  readonly interceptor: SecretInterceptor;
  readonly lab: ProxyLab;
  readonly #known = getCACertificates("default");
  readonly #kept = new Map<string, { readonly value: string; readonly binding: SecretBinding }>();
  /** Of the host that shows a good certificate for bound.test and other.test. */
  port = 0;
  answer: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void = (_, response) => response.end("done");

  private constructor(
    place: string,
    { store, audit, secrets }: { store: Store; audit: Audit; secrets: Secrets },
    effects: Effects | undefined,
  ) {
    this.place = place;
    this.store = store;
    this.audit = audit;
    this.secrets = secrets;
    this.interceptor = new SecretInterceptor(secrets, this.place);
    this.approverToken = join(place, "approver-token");
    this.approvals = new Approvals(store, audit, this.approverToken);
    this.lab = new ProxyLab({ effects: effects?.({ store, approvals: this.approvals, log: quiet }) });
    this.lab.interceptor = this.interceptor;
  }

  static async open(effects?: Effects): Promise<BoundHost> {
    const place = mkdtempSync(join(tmpdir(), "viv-bound-"));
    const store = await openSqliteStore(join(place, "vivarium.db"));
    const audit = new Audit(store, join(place, "anchor"), () => undefined);
    const secrets = await Secrets.open(store, audit, new SealingKey(join(place, "secrets-key")));
    const host = new BoundHost(place, { store, audit, secrets }, effects);
    const { key, cert } = host.certificate("good", ["bound.test", "other.test"]);
    // Node's own list, which the proxy goes by.
    setDefaultCACertificates([...host.#known, cert]);
    host.port = await host.serve(key, cert, ["bound.test", "other.test"]);
    await host.lab.set({});
    return host;
  }

  /** A server with this certificate under these names. */
  async serve(key: string, cert: string, names: readonly string[]): Promise<number> {
    const server = createSecure({ key, cert }, (request, response) => void this.#take(request, response));
    const port = await this.lab.listen(server, ADDRESS);
    for (const name of names) {
      this.lab.names.set(name, [ADDRESS]);
      this.lab.opened.push({ host: name, ports: [port], tcp: false });
    }
    for (const [name, { value, binding }] of this.#kept) if (this.secrets.find(name) !== undefined) await this.keep(name, value, binding);
    return port;
  }

  /** A secret for every project, bound to the ports that its hosts have here, also to those they get later. */
  async keep(name: string, value: string, binding: SecretBinding): Promise<Secret> {
    this.#kept.set(name, { value, binding });
    const hosts = binding.hosts.flatMap((host) => {
      const ports = this.lab.opened.flatMap((rule) => (rule.host === host ? rule.ports : []));
      return ports.length === 0 ? [host] : ports.map((port) => `${host}:${port}`);
    });
    return this.secrets.set(name, value, { ...binding, hosts }, null);
  }

  /** The same host without TLS and without the proxy: what it does when nothing protects it. */
  async unprotected(): Promise<number> {
    return this.lab.listen(
      createServer((request, response) => void this.#take(request, response)),
      ADDRESS,
    );
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    this.heard.push({ line: `${request.method} ${request.url}`, raw: request.rawHeaders, headers: request.headers, body });
    this.answer(request, response, body);
  }

  get last(): HeardRequest {
    const last = this.heard.at(-1);
    if (last === undefined) throw new Error("nothing was heard");
    return last;
  }

  /** Made by openssl, under a name of its own, so that no two are taken for each other; `dates` are the first and the last second of it. */
  certificate(name: string, names: readonly string[], dates: readonly string[] = []): { key: string; cert: string } {
    const [key, request, cert] = [`${name}.key`, `${name}.csr`, `${name}.crt`].map((file) => join(this.place, file)) as [
      string,
      string,
      string,
    ];
    const extension = join(this.place, `${name}.cnf`);
    const alternatives = `subjectAltName=${names.map((one) => `DNS:${one}`).join(",")}`;
    const run = (...words: string[]): void => void execFileSync("openssl", words, { stdio: "pipe", cwd: this.place });
    run(
      "req",
      "-new",
      "-nodes",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-subj",
      `/CN=${name} of ${basename(this.place)}`,
      "-keyout",
      key,
      "-out",
      request,
    );
    writeFileSync(
      extension,
      `[ca]\ndefault_ca=own\n[own]\ndatabase=${name}.index\nnew_certs_dir=.\nserial=${name}.serial\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n[more]\n${alternatives}\nbasicConstraints=CA:TRUE\n`,
    );
    writeFileSync(join(this.place, `${name}.index`), "");
    writeFileSync(join(this.place, `${name}.serial`), "01");
    const life = dates.length === 0 ? ["-days", "2"] : ["-startdate", dates[0] ?? "", "-enddate", dates[1] ?? ""];
    const sign = ["ca", "-batch", "-selfsign", "-config", extension, "-extensions", "more", "-keyfile", key, "-in", request, "-out", cert];
    run(...sign, "-notext", ...life);
    return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
  }

  /** A tunnel that the proxy said yes to. */
  async tunnel(host = "bound.test", port = this.port): Promise<Socket> {
    const socket = this.lab.dial();
    socket.write(`CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`);
    const said = String((await once(socket, "data"))[0]);
    if (!said.startsWith("HTTP/1.1 200 ")) throw new Error(said);
    return socket;
  }

  /** TLS as a program inside speaks it: it trusts this authority alone. */
  async secured(
    host = "bound.test",
    port = this.port,
    options: { servername?: string; ALPNProtocols?: string[] } = {},
  ): Promise<TLSSocket> {
    const socket = await this.tunnel(host, port);
    const ca = Object.values(await this.interceptor.files({}))[0] ?? "";
    const tls = connect({ socket, ca, servername: host, ...options });
    tls.on("error", () => undefined);
    await once(tls, "secureConnect");
    return tls;
  }

  /** Sends bytes through a tunnel with TLS, and reads all that comes until the end. */
  async say(text: string | readonly (string | Buffer)[], host = "bound.test", port = this.port): Promise<string> {
    const tls = await this.secured(host, port);
    for (const piece of typeof text === "string" ? [text] : text) {
      tls.write(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece);
      // Each in a record of its own.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return (await buffer(tls)).toString("latin1");
  }

  /** One request that asks for the end of the connection. */
  async ask(line: string, headers: readonly string[] = [], body = "", host = "bound.test", port = this.port): Promise<string> {
    return this.say(
      `${line} HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n${headers.map((one) => `${one}\r\n`).join("")}\r\n${body}`,
      host,
      port,
    );
  }

  async close(): Promise<void> {
    this.lab.close();
    setDefaultCACertificates(this.#known);
    await this.audit.close();
    await this.store.close();
    rmSync(this.place, { recursive: true, force: true });
  }
}
