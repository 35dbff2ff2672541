import { createServer, type Socket } from "node:net";
import { once } from "node:events";
import { connect } from "node:tls";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { readClientHello } from "../../src/rules/network/client-hello.ts";

/** What Node's own TLS sends first. */
async function realHello(servername: string | undefined): Promise<Buffer> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect({
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    ...(servername === undefined ? {} : { servername }),
  });
  client.on("error", () => undefined);
  const [socket] = (await once(server, "connection")) as [Socket];
  const [data] = (await once(socket, "data")) as [Buffer];
  client.destroy();
  server.close();
  return data;
}

const extension = (type: number, content: Buffer): Buffer =>
  Buffer.concat([Buffer.from([type >> 8, type & 255, content.length >> 8, content.length & 255]), content]);
const nameExtension = (...names: string[]): Buffer => {
  const list = Buffer.concat(
    names.map((name) => Buffer.concat([Buffer.from([0, name.length >> 8, name.length & 255]), Buffer.from(name, "latin1")])),
  );
  return extension(0, Buffer.concat([Buffer.from([list.length >> 8, list.length & 255]), list]));
};

/** A ClientHello with these extensions, cut into records of this size. */
function hello(extensions: readonly Buffer[], recordBytes = 16_000): Buffer {
  const all = Buffer.concat(extensions);
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    Buffer.from([0, 0, 2, 0x13, 1, 1, 0, all.length >> 8, all.length & 255]),
    all,
  ]);
  const message = Buffer.concat([Buffer.from([1, 0, body.length >> 8, body.length & 255]), body]);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += recordBytes) {
    const part = message.subarray(at, at + recordBytes);
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
  }
  return Buffer.concat(records);
}

describe("the name in a ClientHello", () => {
  test("of a real client", async () => {
    expect(readClientHello(await realHello("allowed.test"))).toEqual({ kind: "tls", name: "allowed.test" });
    expect(readClientHello(await realHello(undefined))).toEqual({ kind: "tls", name: undefined });
  });

  test("is known once the last byte is there, however it is cut", () => {
    for (const size of [1, 7, 100, 16_000]) {
      const whole = hello([nameExtension("allowed.test")], size);
      expect(readClientHello(whole)).toEqual({ kind: "tls", name: "allowed.test" });
      for (let length = 0; length < whole.length; length += 1)
        expect(readClientHello(whole.subarray(0, length)).kind, `${length} of ${size}`).toBe("more");
    }
  });

  test("PX-16: an encrypted ClientHello beside it is fine, and the outer name is the one that counts", () => {
    const encrypted = extension(0xfe0d, Buffer.alloc(200, 1));
    for (const name of ["allowed.test", "evil.test"])
      for (const both of [
        [encrypted, nameExtension(name)],
        [nameExtension(name), encrypted],
      ])
        expect(readClientHello(hello(both))).toEqual({ kind: "tls", name });
    expect(readClientHello(hello([encrypted]))).toEqual({ kind: "tls", name: undefined });
  });

  test("PX-16: two names, or two lists of names, are none", () => {
    expect(readClientHello(hello([nameExtension("allowed.test", "evil.test")])).kind).toBe("other");
    expect(readClientHello(hello([nameExtension("allowed.test"), nameExtension("evil.test")])).kind).toBe("other");
    expect(readClientHello(hello([extension(0, Buffer.alloc(0))])).kind).toBe("other");
  });

  test.each([
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n")],
    ["SSH", Buffer.from("SSH-2.0-OpenSSH_9.2\r\n")],
    ["SSL 2", Buffer.from([0x80, 0x2e, 1, 3, 1])],
    ["an empty record", Buffer.from([22, 3, 1, 0, 0])],
    ["another message", Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0])],
    ["a message that is too long", Buffer.from([22, 3, 1, 0, 4, 1, 255, 255, 255])],
  ])("%s is no ClientHello", (_, data) => expect(readClientHello(data).kind).toBe("other"));

  test("whatever bytes come, it answers", () => {
    const whole = hello([nameExtension("allowed.test"), extension(0xfe0d, Buffer.alloc(50, 1))]);
    let seed = 1;
    const random = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31);
    for (let round = 0; round < 20_000; round += 1) {
      const broken = Buffer.from(whole);
      for (let change = 0; change < 1 + (random() % 4); change += 1) broken[random() % broken.length] = random() % 256;
      const found = readClientHello(broken);
      expect(["more", "other", "tls"]).toContain(found.kind);
    }
  });
});
