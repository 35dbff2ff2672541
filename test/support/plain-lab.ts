/** Plain requests through the proxy, byte for byte, and a server outside that answers each path as it is told to. */
import { createServer, type Socket } from "node:net";
import type { AskedConnection } from "../../src/base/host/asked-connection.ts";
import type { Mover, Taker } from "../../src/base/host/mover.ts";
import type { NetworkRecord } from "../../src/rules/network/gate.ts";
import { ProxyLab } from "./proxy-lab.ts";
import { eventually } from "./server.ts";

const HEAD_END = "\r\n\r\n";

export interface PlainAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: Buffer;
}

/** One connection from inside, on which one request follows the other. */
export class PlainClient {
  readonly socket: Socket;
  #got = Buffer.alloc(0);
  #wake = (): void => undefined;
  isClosed = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.#got = Buffer.concat([this.#got, chunk]);
      this.#wake();
    });
    socket.once("close", () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  write(text: string): this {
    this.socket.write(text, "latin1");
    return this;
  }

  get waiting(): number {
    return this.#got.length;
  }

  /** What waits, as text. */
  get text(): string {
    return this.#got.toString("latin1");
  }

  /** What waits, which then waits no more. */
  take(): string {
    const { text } = this;
    this.#got = Buffer.alloc(0);
    return text;
  }

  /** All that comes until the connection ends. */
  async rest(): Promise<Buffer> {
    await this.#until(() => this.isClosed);
    return this.#got;
  }

  /** The next answer; its body ends where its length says, or with the connection. */
  async answer(method = "GET"): Promise<PlainAnswer> {
    await this.#until(() => this.isClosed || this.#got.includes(HEAD_END));
    const end = this.#got.indexOf(HEAD_END);
    if (end < 0) throw new Error(`no whole head, but ${JSON.stringify(this.#got.toString("latin1"))}`);
    const head = this.#got.toString("latin1", 0, end);
    const status = Number(head.slice(9, 12));
    const isBare = method === "HEAD" || status === 204 || status === 304;
    const length = isBare ? 0 : Number(/^content-length: (\d+)\r?$/im.exec(head)?.[1] ?? Number.POSITIVE_INFINITY);
    const start = end + HEAD_END.length;
    await this.#until(() => this.isClosed || this.#got.length >= start + length);
    const body = this.#got.subarray(start, start + Math.min(length, this.#got.length));
    this.#got = this.#got.subarray(start + body.length);
    return { status, head, body };
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}

/** Answers a request with bytes, or as it likes. */
type Scripted = string | Buffer | ((socket: Socket) => void);

export class PlainLab extends ProxyLab {
  /** By path. What is a text is sent, and the connection is ended. */
  readonly answers = new Map<string, Scripted>();
  /** The head of each request that came. */
  readonly heard: string[] = [];
  readonly outside = new Set<Socket>();
  /** Connections that the server itself got, given at once or on its wish. */
  sockets = 0;
  /** How often the server has asked to see more. */
  looks = 0;
  port = 0;

  /** Listens at an address that stands for `allowed.test`. */
  async open(): Promise<void> {
    const server = createServer((socket) => {
      this.outside.add(socket);
      socket.on("error", () => undefined).once("close", () => this.outside.delete(socket));
      let head = "";
      socket.on("data", (chunk) => {
        head += chunk.toString("latin1");
        if (!head.includes(HEAD_END)) return;
        this.heard.push(head);
        const answer = this.answers.get(head.split(" ")[1]?.split("?")[0] ?? "") ?? hello(head);
        if (typeof answer === "function") answer(socket);
        else socket.end(answer);
      });
    });
    this.port = await this.listen(server, "127.0.0.2");
    this.names.set("allowed.test", ["127.0.0.2"]);
    this.opened.push({ host: "allowed.test", ports: [this.port], tcp: false });
    this.#count(this.mover);
    await this.set({});
  }

  get at(): string {
    return `allowed.test:${this.port}`;
  }

  request(path: string, { method = "GET", host = this.at, headers = "" } = {}): string {
    return `${method} http://${host}${path} HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n`;
  }

  tunnel(to = this.at, headers = ""): string {
    return `CONNECT ${to} HTTP/1.1\r\nHost: ${to}\r\n${headers}\r\n`;
  }

  client(sandbox = "one"): PlainClient {
    return new PlainClient(this.dial(sandbox));
  }

  /** The answer to one request on a connection of its own, and what comes behind it. */
  async ask(path: string, how: Parameters<PlainLab["request"]>[1] = {}): Promise<PlainAnswer & { readonly whole: string }> {
    const client = this.client().write(this.request(path, how));
    const { status, head, body } = await client.answer(how.method);
    client.socket.destroy();
    return { status, head, body, whole: `${head}${HEAD_END}${body.toString("latin1")}` };
  }

  /** The record of the end of the newest request for a path. */
  async endOf(path: string): Promise<NetworkRecord["ended"]> {
    const record = await eventually(
      () => this.records.findLast((one) => one.path === path && one.ended !== undefined),
      (found) => found !== undefined,
    );
    return record?.ended;
  }

  get connections(): number {
    return this.egress.use("one").connections;
  }

  async idle(): Promise<void> {
    await eventually(
      () => this.connections,
      (count) => count === 0,
    );
  }

  /** Counts sockets that reach the server, whichever way. */
  #count(mover: Mover): void {
    const open = mover.open.bind(mover);
    mover.open = (path, taker) => {
      const take: Taker["take"] = (...given) => {
        this.sockets += 1;
        taker.take(...given);
      };
      const counted: Taker["asked"] = (connection, request) => {
        if (!Object.hasOwn(connection, "give")) this.#watch(connection);
        taker.asked?.(connection, request);
      };
      return open(path, taker.asked === undefined ? { take } : { take, asked: counted });
    };
  }

  #watch(connection: AskedConnection): void {
    const more = connection.more.bind(connection);
    connection.more = () => {
      this.looks += 1;
      return more();
    };
    const give = connection.give.bind(connection);
    connection.give = async () => {
      const given = await give();
      if (given !== undefined) this.sockets += 1;
      return given;
    };
  }
}

function hello(head: string): string {
  const body = head.startsWith("HEAD ") ? "" : `hello ${head.split(" ")[1]}`;
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}
