/** FS-12 and FS-13 of the threat list: archives that go in, and folders that come out. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { deflateRawSync, gzipSync, inflateRawSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rawHeader, rawTar, type RawEntry } from "../support/raw-tar.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const MEBIBYTE = 1024 ** 2;
const SMALL_DISK_BYTES = 300 * MEBIBYTE;
/** What a refusal may take on a loaded machine; the whole of a bomb would take minutes. */
const TIME_BOUND_MS = 20_000;

describe("archives", needs("root"), () => {
  let server: TestServer;
  let box: string;
  let small: string;
  const read = async (path: string): Promise<string> => text((await server.client.readFile(box, path)).body);

  beforeAll(async () => {
    server = await TestServer.start();
    box = (await server.create()).id;
    small = (await server.create({ limits: { diskBytes: SMALL_DISK_BYTES } })).id;
  });
  afterAll(async () => server?.remove());

  const evil: readonly (readonly [what: string, entries: readonly RawEntry[]])[] = [
    [
      "climbs out",
      [
        { name: "good", content: "1" },
        { name: "../x", content: "1" },
      ],
    ],
    ["climbs out in the middle", [{ name: "a/../../x", content: "1" }]],
    ["is absolute", [{ name: "/etc/x", content: "1" }]],
    [
      "is a link that a later entry goes through",
      [
        { name: "d", type: "2", link: "/etc" },
        { name: "d/x", content: "1" },
      ],
    ],
    ["is a hard link", [{ name: "h", type: "1", link: "/etc/passwd" }]],
    [
      "is a fifo",
      [
        { name: "good", content: "1" },
        { name: "p", type: "6" },
      ],
    ],
    ["is a device", [{ name: "c", type: "3" }]],
    ["is a block device", [{ name: "b", type: "4" }]],
    [
      "is there twice",
      [
        { name: "x", content: "1" },
        { name: "x", content: "2" },
      ],
    ],
    [
      "is there twice, spelled differently",
      [
        { name: "x", content: "1" },
        { name: "./x", content: "2" },
      ],
    ],
    [
      "is there twice, with two slashes",
      [
        { name: "d/x", content: "1" },
        { name: "d//x", content: "2" },
      ],
    ],
    [
      "is a file and then a folder",
      [
        { name: "x", content: "1" },
        { name: "x/y", content: "2" },
      ],
    ],
    [
      "is a folder and then a file",
      [
        { name: "x/y", content: "1" },
        { name: "x", content: "2" },
      ],
    ],
    ["has no name", [{ name: "", content: "1" }]],
    [
      "is the folder itself",
      [
        { name: "good", content: "1" },
        { name: ".", content: "1" },
      ],
    ],
  ];

  test.each(evil)("FS-12: an uploaded archive whose entry %s is refused whole", async (_, entries) => {
    const { stdout: before } = await server.sh(
      box,
      "mkdir -p /tmp/up; echo kept > /tmp/up/kept; find /tmp/up /tmp/x /etc/x /x 2>/dev/null",
    );
    await expect(server.client.unpackFiles(box, "/tmp/up", Readable.from([rawTar(entries)]))).rejects.toMatchObject({
      code: "invalid_input",
    });
    expect((await server.sh(box, "find /tmp/up /tmp/x /etc/x /x 2>/dev/null")).stdout).toBe(before);
    expect(readdirSync(join(server.paths.home, "tmp"))).toEqual([]);
  });

  test("FS-12: a cut and a false archive are refused, an honest one is unpacked, and tar itself would climb out", async () => {
    const honest = rawTar([
      { name: "d/", type: "5" },
      { name: "d/x", content: "1".repeat(600) },
      { name: "y", content: "2" },
    ]);
    for (const bytes of [honest.subarray(0, 1100), Buffer.from("no archive at all ".repeat(100))]) {
      await expect(server.client.unpackFiles(box, "/tmp/cut", Readable.from([bytes]))).rejects.toMatchObject({ code: "invalid_input" });
      expect((await server.sh(box, "ls /tmp/cut")).end?.exitCode).not.toBe(0);
    }
    expect(await server.client.unpackFiles(box, "/tmp/honest", Readable.from([honest]))).toEqual({ files: 2, bytes: 601 });
    const place = mkdtempSync(join(tmpdir(), "viv-tar-"));
    mkdirSync(join(place, "in"));
    execFileSync("tar", ["-xPf", "-", "-C", join(place, "in")], { input: rawTar([{ name: "../x", content: "1" }]) });
    expect(existsSync(join(place, "x"))).toBe(true);
    rmSync(place, { recursive: true });
  });

  test("FS-13: a folder with special files, loops and a file larger than any disk downloads or is refused at once", async () => {
    const make =
      "mkdir -p weird && cd weird && mkfifo fifo && ln -s loop loop && ln -s .. up && echo 1 > file && perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local=>q(sock),Listen=>1)'";
    expect((await server.sh(box, make)).end?.exitCode).toBe(0);
    const archive = await buffer(await server.client.packFiles(box, "weird"));
    const names = execFileSync("tar", ["-tf", "-"], { input: archive, encoding: "utf8" }).trim().split("\n").toSorted();
    expect(names.map((name) => name.replace(/^\.\//, "")).filter(Boolean)).toEqual(["file", "loop", "up"]);
    for (const path of ["weird/fifo", "weird/sock", "weird/loop"])
      await expect(read(path), path).rejects.toMatchObject({
        code: expect.stringMatching(/invalid_input|file_not_found|denied|unsupported/),
      });
    await server.sh(box, "truncate -s 4T weird/huge");
    await expect(server.client.packFiles(box, "weird").then(buffer)).rejects.toMatchObject({ code: "invalid_input" });
  });

  interface Refusal {
    readonly sentBytes: number;
    readonly ms: number;
    readonly message: string;
  }

  /** Uploads far too much: how much of it was taken until the refusal, and that nothing of it stays. */
  async function refusal(archive: Iterable<Buffer>): Promise<Refusal> {
    let sentBytes = 0;
    const counted = function* (): Generator<Buffer> {
      for (const chunk of archive) {
        sentBytes += chunk.length;
        yield chunk;
      }
    };
    await server.sh(small, "mkdir -p /tmp/bomb; echo kept > /tmp/bomb/kept");
    const began = performance.now();
    const error = await server.client.unpackFiles(small, "/tmp/bomb", Readable.from(counted())).then(
      () => ({ code: "unpacked", message: "" }),
      (reason: { code: string; message: string }) => reason,
    );
    const ms = performance.now() - began;
    expect(error.code).toBe("invalid_input");
    expect((await server.sh(small, "cat /tmp/bomb/*")).stdout).toBe("kept\n");
    await expect.poll(() => readdirSync(join(server.paths.home, "tmp"))).toEqual([]);
    return { sentBytes, ms, message: error.message };
  }

  function* zeros(bytes: number): Generator<Buffer> {
    const chunk = Buffer.alloc(MEBIBYTE);
    for (let sent = 0; sent < bytes; sent += chunk.length) yield chunk;
  }

  test("FS-12: ten gibibytes are refused at the header of the file that there is no room for", async () => {
    const many = function* (): Generator<Buffer> {
      for (let index = 0; index < 160; index += 1) {
        yield rawHeader({ name: `part${index}` }, 64 * MEBIBYTE);
        yield* zeros(64 * MEBIBYTE);
      }
    };
    const one = function* (): Generator<Buffer> {
      yield rawHeader({ name: "huge" }, 8 ** 11 - 1);
      yield* zeros(10 * 1024 ** 3);
    };
    const parts = await refusal(many());
    expect(parts.message).toContain('"part4" brings more');
    expect(parts.sentBytes).toBeLessThan(SMALL_DISK_BYTES + 64 * MEBIBYTE);
    const whole = await refusal(one());
    expect(whole.message).toContain('"huge" brings more');
    expect(whole.sentBytes).toBeLessThan(64 * MEBIBYTE);
    expect(Math.max(parts.ms, whole.ms)).toBeLessThan(TIME_BOUND_MS);
  });

  test("FS-12: two million entries are refused at the first that is too many, also when they are one folder again and again", async () => {
    const headers = function* (name: (index: number) => string, type: string): Generator<Buffer> {
      for (let index = 0; index < 2_000_000; index += 500)
        yield Buffer.concat(Array.from({ length: 500 }, (_, offset) => rawHeader({ name: name(index + offset), type }, 0)));
    };
    for (const archive of [headers((index) => `f${index}`, "0"), headers(() => "d/", "5")]) {
      const { sentBytes, ms, message } = await refusal(archive);
      expect(message).toContain("is one too many");
      expect(sentBytes).toBeLessThan(200_000 * 512 + 32 * MEBIBYTE);
      expect(ms).toBeLessThan(TIME_BOUND_MS);
    }
  }, 60_000);

  test("FS-12: attributes without a file, and names deeper than any disk, are refused before they fill a memory", async () => {
    const attributes = function* (): Generator<Buffer> {
      const content = Buffer.alloc(4 * MEBIBYTE, "30 comment=xxxxxxxxxxxxxxxxxx\n");
      for (;;) {
        yield rawHeader({ name: "attributes", type: "x" }, content.length);
        yield content;
      }
    };
    const endless = await refusal(attributes());
    expect(endless.message).toContain("larger than its entries");
    expect(endless.sentBytes).toBeLessThan(64 * MEBIBYTE);
    const deep = function* (): Generator<Buffer> {
      for (let index = 0; ; index += 1) {
        const record = `path=${index}${"/a".repeat(2000)}\n`;
        const content = `${record.length + 5} ${record}`;
        yield rawTar([{ name: "attributes", type: "x", content }]).subarray(0, -1024);
        yield rawHeader({ name: "x" }, 0);
      }
    };
    expect((await refusal(deep())).sentBytes).toBeLessThan(8 * MEBIBYTE);
    const long = rawTar([{ name: "attributes", type: "x", content: `267 path=${"n".repeat(257)}\n` }, { name: "x" }]);
    expect((await refusal([long])).message).toContain("too long a name");
  });

  test("FS-12: a compressed bomb stays compressed and is refused, where a program that unpacks it fills any disk", async () => {
    const member = gzipSync(Buffer.concat([rawHeader({ name: "zeros" }, 63 * MEBIBYTE), Buffer.alloc(63 * MEBIBYTE)]));
    const bomb = Buffer.concat(Array.from({ length: 163 }, () => member));
    expect(bomb.length).toBeLessThan(12 * MEBIBYTE);
    const zip = Buffer.concat([
      Buffer.from("PK\x03\x04\x14\0\0\0\x08\0".padEnd(30, "\0"), "latin1"),
      deflateRawSync(Buffer.alloc(100 * MEBIBYTE)),
    ]);
    for (const archive of [bomb, zip]) expect((await refusal([archive])).message).toBe("The body is not a tar archive.");
    expect(await putEncoded(server, `/sandboxes/${small}/files/archive?path=/tmp/bomb`, bomb)).toBe(400);
    expect((await server.sh(small, "cat /tmp/bomb/*")).stdout).toBe("kept\n");
    const free = spawnSync("sh", ["-c", `gzip -dc | head -c ${SMALL_DISK_BYTES * 2} | wc -c`], { input: bomb, encoding: "utf8" });
    expect(Number(free.stdout)).toBe(SMALL_DISK_BYTES * 2);
    expect(inflateRawSync(zip.subarray(30)).length).toBe(100 * MEBIBYTE);
  });
});

/** A caller who says that its body is compressed, which the server does not look at. */
async function putEncoded(server: TestServer, path: string, body: Buffer): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const headers = { "content-encoding": "gzip", "content-type": "application/x-tar" };
  const sent = request({ socketPath: server.paths.socket, method: "PUT", path, headers }, (answer) => {
    answer.resume();
    resolve(answer.statusCode);
  });
  sent.on("error", reject);
  sent.end(body);
  return promise;
}
