/** The proxy by itself, spoken to as a sandbox does, with servers on loopback aliases that stand for the internet. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttp, type Server as HttpServer } from "node:http";
import { connect, createServer as createTcp, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTls } from "node:tls";
import { Mover } from "../../src/base/host/mover.ts";
import { Egress, type EgressOptions } from "../../src/rules/network/egress.ts";
import type { Judge, NetworkRecord } from "../../src/rules/network/gate.ts";
import type { Interceptor } from "../../src/rules/network/interception.ts";
import { NO_NETWORK, type NetworkRules } from "../../src/base/schema/network.ts";
import { certificate } from "./certificates.ts";
import { sanitizedMover } from "./sanitized-mover.ts";

export interface Origin {
  readonly port: number;
  /** What came in, connection by connection. */
  readonly heard: string[];
}

export class ProxyLab {
  readonly folder = mkdtempSync(join(tmpdir(), "viv-proxy-"));
  readonly records: NetworkRecord[] = [];
  /** Addresses by name; asked counts the questions. */
  readonly names = new Map<string, readonly string[] | (() => readonly string[])>();
  readonly asked: string[] = [];
  /** Names and ports that the user's own config opens. */
  readonly opened: { host: string; ports: number[]; tcp: boolean }[] = [];
  readonly ownPorts: number[] = [];
  ownAddresses: string[] = [];
  /** Hears of each record. */
  recorded: (record: NetworkRecord) => unknown = () => undefined;
  failing = false;
  /** Has a say where it is set. */
  judge: Judge["judge"] | undefined;
  /** What it says of names that are asked for. */
  lets: Judge["lets"] = async () => true;
  /** What it says of open connections. */
  standing: Judge["standing"] = async () => () => true;
  /** Opens TLS where it is set. */
  interceptor: Interceptor | undefined;
  readonly warnings: string[] = [];
  readonly mover: Mover;
  readonly egress: Egress;
  readonly #closers: (() => void)[] = [];

  constructor(more: Pick<EgressOptions, "effects"> = {}) {
    const log = { info: () => undefined, warn: (message: string) => void this.warnings.push(message) };
    this.mover = new Mover({ program: sanitizedMover(), log });
    this.egress = new Egress({
      log,
      mover: this.mover,
      resolve: async (host) => {
        this.asked.push(host);
        const known = this.names.get(host) ?? [];
        return typeof known === "function" ? known() : known;
      },
      opened: this.opened,
      interceptor: () => this.interceptor,
      judge: {
        judge: async (...given) => this.judge?.(...given),
        opens: async () => undefined,
        lets: (...given) => this.lets(...given),
        standing: (session) => this.standing(session),
      },
      ...more,
      ownPorts: () => this.ownPorts,
      ownAddresses: () => this.ownAddresses,
      listens: (port) => port === 5432,
      record: (record) => {
        if (this.failing) throw new Error("the disk is full");
        this.records.push(record);
        this.recorded(record);
      },
    });
  }

  async set(rules: Partial<NetworkRules>, sandbox = "one"): Promise<void> {
    await this.egress.set(sandbox, this.#folderOf(sandbox), { ...NO_NETWORK, mode: "allow-list", ...rules });
  }

  #folderOf(sandbox: string): string {
    const folder = join(this.folder, sandbox);
    execFileSync("mkdir", ["-p", folder]);
    return folder;
  }

  socket(sandbox = "one"): string {
    return join(this.folder, sandbox, "egress.sock");
  }

  dial(sandbox = "one"): Socket {
    const socket = connect(this.socket(sandbox));
    socket.on("error", () => undefined);
    return socket;
  }

  /** Sends bytes, one piece after the other's answer, and reads until the end. */
  async say(...pieces: readonly (string | Buffer)[]): Promise<string> {
    return (await this.sayBytes(...pieces)).toString("latin1");
  }

  async sayBytes(...pieces: readonly (string | Buffer)[]): Promise<Buffer> {
    const socket = this.dial();
    const chunks: Buffer[] = [];
    const rest = [...pieces];
    const next = (): void => {
      const piece = rest.shift();
      if (piece !== undefined) socket.write(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece);
    };
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      next();
    });
    next();
    await new Promise((resolve) => socket.once("close", resolve));
    return Buffer.concat(chunks);
  }

  /** A server that notes what it hears and answers every request with its name. */
  async web(address: string, answer?: Parameters<typeof createHttp>[1]): Promise<Origin> {
    const heard: string[] = [];
    const server: HttpServer = createHttp((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString("latin1")));
      request.on("end", () => {
        heard.push(`${request.method} ${request.url} ${request.headers.host} ${body}`);
        if (answer === undefined) response.end(`hello from ${address}`);
        else (answer as (...all: unknown[]) => void)(request, response);
      });
    });
    return { port: await this.listen(server, address), heard };
  }

  async tcp(address: string): Promise<Origin> {
    const heard: string[] = [];
    const server = createTcp((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", (data) => {
        heard.push(data.toString("latin1"));
        socket.write(`heard ${data.length}`);
      });
    });
    return { port: await this.listen(server, address), heard };
  }

  async tls(address: string, name: string): Promise<Origin> {
    const heard: string[] = [];
    const server = createTls(certificate(this.folder, name), (socket) => {
      socket.on("error", () => undefined);
      socket.on("data", (data) => {
        heard.push(data.toString("latin1"));
        socket.write(`${socket.servername || "nobody"} heard ${data.length}`);
      });
    });
    return { port: await this.listen(server, address), heard };
  }

  /** Listens until the lab is closed. */
  async listen(server: Server, address: string): Promise<number> {
    const open = new Set<Socket>();
    server.on("connection", (socket) => open.add(socket));
    server.listen(0, address);
    await once(server, "listening");
    this.#closers.push(() => {
      server.close();
      for (const socket of open) socket.destroy();
    });
    return (server.address() as AddressInfo).port;
  }

  close(): void {
    this.egress.closeAll();
    void this.mover.close();
    for (const close of this.#closers) close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
