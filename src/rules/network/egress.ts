/**
 * The egress proxy. Every sandbox has a socket of its own, so the socket says who speaks; where there is no socket,
 * because the mode is off or the server is down, there is no way out.
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { errorText, type Logger } from "../../base/host/log.ts";
import type { AskedConnection } from "../../base/host/asked-connection.ts";
import type { MovedConnection } from "../../base/host/moved-connection.ts";
import type { Mover } from "../../base/host/mover.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { PORTS_FILE, PROXY_SOCKET, type NetworkRules } from "../../base/schema/network.ts";
import type { EffectRecords } from "./effects.ts";
import { carryTunnel } from "./carried-tunnel.ts";
import { Gate, type GateOptions } from "./gate.ts";
import { parseAuthority, parseHost, type Authority } from "./host.ts";
import { HttpProxy } from "./http.ts";
import { Names, type Existence } from "./names.ts";
import { carryPlain } from "./plain.ts";
import { plainRequest, tunnelRequest, type PlainRequest } from "./plain-request.ts";
import { deny } from "./rules.ts";
import { rawAnswer } from "./answers.ts";
import { Session } from "./session.ts";
import { readSocks, SOCKS_OK, socksRefusal } from "./socks.ts";
import { firstBytes, lastWord } from "./streams.ts";
import { tunnel } from "./tunnel.ts";

export interface EgressOptions extends GateOptions {
  readonly effects?: EffectRecords | undefined;
  /** Takes the connections from inside. */
  readonly mover: Mover;
  readonly log: Logger;
}

interface Door {
  readonly session: Session;
  readonly shut: () => void;
  readonly folder: string;
  /** As they were written for process 1. */
  ports: string;
}

export interface SessionUse {
  readonly connections: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly allowed: number;
  readonly denied: number;
}

const SOCKS_VERSION = 5;
/** What the cell says of a program that dialled by itself: this byte, host and port, a line feed. */
const DIRECT = 2;
/** What it begins with to ask whether a name exists: this byte, the name, a line feed. */
const NAME = 3;
const ANSWER: Readonly<Record<Existence, string>> = { exists: "+", missing: "-", unknown: "?" };
const MAX_LINE_BYTES = 300;
/** That process 1 listens on for each name. */
const MOST_PORTS = 16;
const NO_PREFACE = Buffer.alloc(0);
const UNUSED: SessionUse = { connections: 0, sentBytes: 0, receivedBytes: 0, allowed: 0, denied: 0 };

export class Egress {
  readonly #log: Logger;
  readonly #mover: Mover;
  readonly #gate: Gate;
  readonly #http: HttpProxy;
  readonly #names: Names;
  readonly #opened: EgressOptions["opened"];
  readonly #doors = new Map<string, Door>();
  readonly #watch: NodeJS.Timeout;
  #looking = false;

  constructor(options: EgressOptions) {
    this.#log = options.log;
    this.#mover = options.mover;
    this.#opened = options.opened;
    this.#gate = new Gate(options);
    this.#http = new HttpProxy(this.#gate, options.effects);
    this.#names = new Names(options);
    this.#watch = setInterval(() => void this.#look(), LIMITS.egressWatchMs).unref();
  }

  /** Opens, changes or closes the way out of a sandbox whose sockets lie in this folder. What is no longer allowed ends at once. */
  async set(sandbox: string, folder: string, rules: NetworkRules): Promise<void> {
    const door = this.#doors.get(sandbox);
    if (rules.mode === "off") return this.close(sandbox);
    if (door === undefined) return this.#open(sandbox, folder, rules);
    door.session.rules = rules;
    const ports = this.#portsOf(rules);
    if (ports !== door.ports) writePorts(folder, (door.ports = ports));
    door.session.cutUnless(({ host, port }) => this.#gate.ruling(door.session, host, port).verdict === "allow");
  }

  use(sandbox: string): SessionUse {
    const session = this.#doors.get(sandbox)?.session;
    if (session === undefined) return UNUSED;
    const { sent, received } = session.bytes;
    return { connections: session.connections, sentBytes: sent, receivedBytes: received, allowed: session.allowed, denied: session.denied };
  }

  /** Ends what is open, and the way out. */
  close(sandbox: string): void {
    const door = this.#doors.get(sandbox);
    if (door === undefined) return;
    this.#doors.delete(sandbox);
    door.shut();
    rmSync(join(door.folder, PORTS_FILE), { force: true });
    door.session.close();
  }

  closeAll(): void {
    clearInterval(this.#watch);
    for (const sandbox of this.#doors.keys()) this.close(sandbox);
  }

  async #open(sandbox: string, folder: string, rules: NetworkRules): Promise<void> {
    const session = new Session(sandbox, rules);
    const shut = await this.#mover.open(join(folder, PROXY_SOCKET), {
      take: (...given) => void this.#serve(session, ...given),
      asked: (...given) => void this.#asked(session, ...given),
    });
    const ports = this.#portsOf(rules);
    this.#doors.set(sandbox, { session, shut, folder, ports });
    writePorts(folder, ports);
  }

  #portsOf({ ports, allow, private: own = [] }: NetworkRules): string {
    const open = new Set([...ports, ...[...allow, ...this.#opened, ...own].flatMap((rule) => rule.ports ?? [])]);
    return `${[...open].slice(0, MOST_PORTS).join(" ")}\n`;
  }

  /** A request that the mover shows. What it can't carry goes to a connection of the server's own, and what is refused is told there. */
  async #asked(session: Session, asked: AskedConnection, shown: Buffer): Promise<void> {
    try {
      const request = plainRequest(shown);
      const to = request ?? this.#tunnelled(shown);
      const isCarried = to !== undefined && session.admit(asked);
      const rest = isCarried ? await this.#carry(session, asked, to, request) : undefined;
      if (isCarried && rest === undefined) return;
      const given = await asked.give();
      if (given === undefined) return;
      const { socket, connection } = given;
      if (rest === undefined) return await this.#serve(session, socket, NO_PREFACE, connection);
      session.admitSocket(socket, connection);
      if ("verdict" in rest) return lastWord(socket, rawAnswer(rest, request?.method));
      socket.on("error", () => socket.destroy());
      this.#http.take(session, socket, rest.said, to, rest.ruling);
    } catch (error) {
      this.#log.warn("a request of a sandbox", { sandbox: session.sandbox, error: errorText(error) });
      asked.destroy();
    }
  }

  #carry(session: Session, asked: AskedConnection, to: Authority, request: PlainRequest | undefined): ReturnType<typeof carryTunnel> {
    if (request === undefined) return carryTunnel(this.#gate, session, asked, to);
    return carryPlain(this.#gate, session, asked, request);
  }

  /** Where a tunnel leads, unless the server opens what is in it. */
  #tunnelled(shown: Buffer): Authority | undefined {
    const to = tunnelRequest(shown);
    return to === undefined || this.#gate.interceptor(to.host, to.port) !== undefined ? undefined : to;
  }

  async #serve(session: Session, client: Socket, preface: Buffer, connection: MovedConnection): Promise<void> {
    client.on("error", () => client.destroy());
    if (!session.admitSocket(client, connection))
      return lastWord(
        client,
        rawAnswer(deny("too_many_connections", "Too many connections are open in this sandbox.", "Close some of them.")),
      );
    try {
      if (preface[0] === DIRECT) await this.#direct(session, client, preface);
      else await this.#speak(session, client);
    } catch (error) {
      this.#log.warn("a connection of a sandbox", { sandbox: session.sandbox, error: errorText(error) });
      client.destroy();
    }
  }

  async #speak(session: Session, client: Socket): Promise<void> {
    const data = await firstBytes(client, Buffer.alloc(0), (got) => got.length > 0, LIMITS.egressHeadMs);
    if (data === undefined) return void client.destroy();
    if (data[0] === SOCKS_VERSION) return this.#socks(session, client, data);
    if (data[0] === DIRECT) return this.#direct(session, client, data);
    if (data[0] === NAME) return this.#name(session, client, data);
    this.#http.take(session, client, data);
  }

  async #socks(session: Session, client: Socket, start: Buffer): Promise<void> {
    const request = await readSocks(client, start);
    if (request === undefined) return void client.destroy();
    if (Buffer.isBuffer(request)) return lastWord(client, request);
    await this.#tunnel(session, client, "socks5", request, {
      accept: () => client.write(SOCKS_OK),
      refuse: ({ code }) => lastWord(client, socksRefusal(code)),
    });
  }

  async #name(session: Session, client: Socket, start: Buffer): Promise<void> {
    const { line } = await firstLine(client, start);
    const host = line === undefined ? undefined : parseHost(line, false);
    lastWord(client, ANSWER[host === undefined ? "missing" : await this.#names.look(session, host)]);
  }

  async #direct(session: Session, client: Socket, start: Buffer): Promise<void> {
    const { line, rest } = await firstLine(client, start);
    const target = line === undefined ? undefined : parseAuthority(line);
    if (target === undefined) return void client.destroy();
    await this.#tunnel(
      session,
      client,
      "direct",
      { ...target, head: rest },
      {
        accept: () => undefined,
        // It believes to speak with the host itself: only plain HTTP has room for an answer.
        refuse: (denied) => (target.port === 80 ? lastWord(client, rawAnswer(denied)) : client.destroy()),
      },
    );
  }

  #tunnel(
    session: Session,
    client: Socket,
    protocol: "socks5" | "direct",
    request: { host: string; port: number; head: Buffer },
    how: Pick<Parameters<typeof tunnel>[2], "accept" | "refuse">,
  ): Promise<void> {
    return tunnel(this.#gate, session, { ...request, protocol, client, ...how }, this.#http);
  }

  /** Ends what has used up its bytes, and what a policy that has changed no longer allows. */
  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    for (const { session } of this.#doors.values()) {
      if (session.exhausted) session.cutUnless(() => false);
      await this.#gate.cutFallen(session).catch((error: unknown) => {
        // Connections that can't be judged are closed.
        this.#log.warn("open connections could not be judged", { sandbox: session.sandbox, error: errorText(error) });
        session.cutUnless(() => false);
      });
    }
    this.#looking = false;
  }
}

/** What stands between the first byte and a line feed, and what comes behind. */
async function firstLine(client: Socket, start: Buffer): Promise<{ line: string | undefined; rest: Buffer }> {
  const whole = await firstBytes(client, start, (got) => got.includes("\n") || got.length > MAX_LINE_BYTES, LIMITS.egressHeadMs);
  const end = whole?.indexOf("\n") ?? -1;
  if (whole === undefined || end < 0) return { line: undefined, rest: Buffer.alloc(0) };
  return { line: whole.subarray(1, end).toString("latin1"), rest: whole.subarray(end + 1) };
}

/** Read by process 1 whenever a name is asked for. */
function writePorts(folder: string, ports: string): void {
  const path = join(folder, PORTS_FILE);
  writeFileSync(`${path}.new`, ports, { mode: 0o644 });
  renameSync(`${path}.new`, path);
}
