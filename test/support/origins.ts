/** Servers that stand for the internet in tests: a DNS server of the test's own, and web servers on loopback aliases. */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";

/** Answers A and AAAA from a table, and notes every name it is asked for. */
export class TestResolver {
  readonly asked: string[] = [];
  /** Addresses by name; a function is called for each question. */
  readonly names = new Map<string, readonly string[] | (() => readonly string[])>();
  readonly #socket: UdpSocket;

  private constructor(socket: UdpSocket) {
    this.#socket = socket;
    socket.on("message", (message, from) => socket.send(this.#answer(message), from.port, from.address));
  }

  static async open(): Promise<TestResolver> {
    const socket = createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    return new TestResolver(socket);
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  close(): void {
    this.#socket.close();
  }

  #answer(question: Buffer): Buffer {
    const labels: string[] = [];
    let at = 12;
    while ((question[at] ?? 0) > 0) {
      const length = question[at] ?? 0;
      labels.push(question.subarray(at + 1, at + 1 + length).toString("latin1"));
      at += 1 + length;
    }
    const name = labels.join(".").toLowerCase();
    const type = question.readUInt16BE(at + 1);
    this.asked.push(name);
    const known = this.names.get(name);
    const addresses = (typeof known === "function" ? (type === 1 ? known() : []) : (known ?? [])).filter((address) =>
      type === 1 ? !address.includes(":") : type === 28 && address.includes(":"),
    );
    const header = Buffer.from(question.subarray(0, at + 5));
    header.writeUInt16BE(known === undefined ? 0x8183 : 0x8180, 2);
    header.writeUInt16BE(addresses.length, 6);
    header.writeUInt32BE(0, 8);
    return Buffer.concat([header, ...addresses.map((address) => record(type, address))]);
  }
}

function record(type: number, address: string): Buffer {
  const data = type === 1 ? Buffer.from(address.split(".").map(Number)) : sixBytes(address);
  const head = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
  return Buffer.concat([head, data]);
}

function sixBytes(address: string): Buffer {
  const [head = "", tail = ""] = address.split("::");
  const groups = (part: string): number[] => (part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16)));
  const before = groups(head);
  const after = groups(tail);
  const all = [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
  const data = Buffer.alloc(16);
  all.forEach((group, index) => data.writeUInt16BE(group, index * 2));
  return data;
}
