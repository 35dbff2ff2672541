/** An SMTP server (RFC 5321) with STARTTLS and AUTH PLAIN or LOGIN, which keeps what it is given. */
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { TLSSocket } from "node:tls";

export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly data: string;
  /** As whom the sender logged in. */
  readonly user: string | undefined;
  readonly isTls: boolean;
}

export interface SmtpOptions {
  readonly key: Buffer;
  readonly cert: Buffer;
  readonly user: string;
  readonly password: string;
  /** Hides STARTTLS, as a machine between could. */
  readonly hidesTls?: boolean;
  /** Answers to the next messages, before they are taken again. */
  readonly refusals?: string[];
}

export class SmtpServer {
  readonly mails: ReceivedMail[] = [];
  /** Lines of clients, as they came. */
  readonly lines: string[] = [];
  readonly #server: Server;

  private constructor(options: SmtpOptions) {
    this.#server = createServer((socket) => new Conversation(this, options).serve(socket, false));
  }

  static async start(options: SmtpOptions): Promise<SmtpServer> {
    const smtp = new SmtpServer(options);
    await new Promise<void>((resolve) => void smtp.#server.listen(0, "127.0.0.1", resolve));
    return smtp;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()));
  }
}

class Conversation {
  readonly #smtp: SmtpServer;
  readonly #options: SmtpOptions;
  #socket: Socket | undefined;
  #isTls = false;
  #rest = "";
  #user: string | undefined;
  #from = "";
  #to: string[] = [];
  #data: string[] | undefined;

  constructor(smtp: SmtpServer, options: SmtpOptions) {
    this.#smtp = smtp;
    this.#options = options;
  }

  serve(socket: Socket, isTls: boolean): void {
    this.#socket = socket;
    this.#isTls = isTls;
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    if (!isTls) this.#say("220 test ESMTP");
  }

  #say(line: string): void {
    this.#socket?.write(`${line}\r\n`);
  }

  #read(chunk: Buffer): void {
    const lines = (this.#rest + chunk.toString("latin1")).split("\r\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#line(line);
  }

  #line(line: string): void {
    if (this.#data !== undefined) return this.#content(line);
    this.#smtp.lines.push(line);
    const [verb = ""] = line.toUpperCase().split(" ");
    if (verb === "EHLO") return this.#greet();
    if (verb === "STARTTLS") return this.#startTls();
    if (verb === "AUTH") return this.#logIn(line.split(" ")[2] ?? "");
    if (verb === "MAIL") {
      this.#from = /<(.*)>/.exec(line)?.[1] ?? "";
      this.#to = [];
      return this.#say(this.#user === undefined ? "530 5.7.0 log in first" : "250 OK");
    }
    if (verb === "RCPT") {
      this.#to.push(/<(.*)>/.exec(line)?.[1] ?? "");
      return this.#say("250 OK");
    }
    if (verb === "DATA") {
      const refusal = this.#options.refusals?.shift();
      if (refusal !== undefined) return this.#say(refusal);
      this.#data = [];
      return this.#say("354 go on");
    }
    if (verb === "QUIT") return void this.#socket?.end("221 bye\r\n");
    this.#say("250 OK");
  }

  #greet(): void {
    this.#say("250-test");
    if (!this.#isTls && this.#options.hidesTls !== true) this.#say("250-STARTTLS");
    this.#say("250 AUTH PLAIN");
  }

  #startTls(): void {
    const plain = this.#socket;
    if (plain === undefined) return;
    this.#say("220 go on");
    plain.removeAllListeners("data");
    const { key, cert } = this.#options;
    this.serve(new TLSSocket(plain, { isServer: true, key, cert }), true);
  }

  #logIn(told: string): void {
    const [, user, password] = Buffer.from(told, "base64").toString().split("\0");
    const good = user === this.#options.user && password === this.#options.password;
    this.#user = good ? user : undefined;
    this.#say(good ? "235 welcome" : "535 5.7.8 wrong password");
  }

  #content(line: string): void {
    if (line !== ".") return void this.#data?.push(line.startsWith(".") ? line.slice(1) : line);
    const data = (this.#data ?? []).join("\r\n");
    this.#data = undefined;
    this.#smtp.mails.push({ from: this.#from, to: this.#to, data, user: this.#user, isTls: this.#isTls });
    this.#say("250 OK");
  }
}
