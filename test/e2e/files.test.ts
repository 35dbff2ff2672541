import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FileChange } from "../../src/base/schema/files.ts";
import { viv } from "../support/viv.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const MEBIBYTE = 1024 ** 2;

async function* bytes(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part);
}

/** A hundred of these differ from each other, so that a part lost or swapped shows. */
async function* manyBytes(mebibytes: number, hash: ReturnType<typeof createHash>): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < mebibytes; index += 1) {
    const part = Buffer.alloc(MEBIBYTE, `${index} `);
    hash.update(part);
    yield part;
  }
}

describe("files of a sandbox", needs("root"), () => {
  let server: TestServer;
  let box: string;

  beforeAll(async () => {
    server = await TestServer.start({ files: { "hello.txt": "hello\n", "src/a.js": "1\n", "src/deep/b.js": "2\n" } });
    box = (await server.create({ name: "files" })).id;
  });

  afterAll(async () => server.remove());

  const read = async (path: string, user?: string): Promise<string> =>
    (await buffer((await server.client.readFile(box, path, user)).body)).toString();

  test("BOX-4: are written, read, looked at, moved and removed, and reality keeps its own", async () => {
    const entry = await server.client.writeFile(box, "hello.txt", bytes("changed", "\n"), { mode: 0o640 });
    expect(entry).toMatchObject({ type: "file", size: 8, mode: "640", uid: 0 });
    expect(await read("hello.txt")).toBe("changed\n");
    expect(await read(join(server.project, "hello.txt"))).toBe("changed\n");
    expect((await server.sh(box, "cat hello.txt")).stdout).toBe("changed\n");
    await server.client.call("makeFolder", { sandbox: box, path: "made/below", parents: true });
    await server.client.call("moveFile", { sandbox: box, path: "hello.txt", to: "made/below/moved.txt" });
    expect(await server.client.call("statFile", { sandbox: box, path: "made/below/moved.txt" })).toMatchObject({ size: 8, type: "file" });
    await server.client.call("removeFile", { sandbox: box, path: "made", recursive: true });
    await expect(server.client.call("statFile", { sandbox: box, path: "made" })).rejects.toMatchObject({ code: "file_not_found" });
    expect(readFileSync(join(server.project, "hello.txt"), "utf8")).toBe("hello\n");
  });

  test("BOX-4: are listed with kinds and targets, to a depth and up to a limit", async () => {
    await server.sh(
      box,
      "mkdir -p kinds/deep/deeper; cd kinds; echo x > file; ln -s /etc/passwd link; mkfifo fifo; touch deep/deeper/last",
    );
    const { entries } = await server.client.call("listFiles", { sandbox: box, path: "kinds" });
    expect(entries.map(({ path, type, target }) => `${type} ${path} ${target}`).toSorted()).toEqual([
      "dir deep null",
      "fifo fifo null",
      "file file null",
      "link link /etc/passwd",
    ]);
    const deep = await server.client.call("listFiles", { sandbox: box, path: "kinds", depth: 3 });
    expect(deep.entries.map(({ path }) => path)).toContain("deep/deeper/last");
    expect((await server.client.call("listFiles", { sandbox: box, path: "kinds", limit: 2 })).entries).toHaveLength(2);
  });

  test("BOX-4: are refused with one error each, and a name that exists is kept", async () => {
    const at = { sandbox: box };
    await server.sh(box, "mkdir -p errors/full; echo 1 > errors/full/one; echo 2 > errors/two");
    const refusals = [
      [() => server.client.call("makeFolder", { ...at, path: "errors/full" }), "exists"],
      [() => server.client.call("makeFolder", { ...at, path: "no/such/parent" }), "file_not_found"],
      [() => server.client.call("moveFile", { ...at, path: "errors/two", to: "errors/full/one" }), "exists"],
      [() => server.client.call("removeFile", { ...at, path: "errors/full" }), "invalid_input"],
      [() => server.client.call("removeFile", { ...at, path: "errors/absent" }), "file_not_found"],
      [() => server.client.readFile(box, "errors/full"), "invalid_input"],
      [() => server.client.readFile(box, "/dev/zero"), "invalid_input"],
      [() => server.client.writeFile(box, "errors/missing/file", bytes("x")), "file_not_found"],
      [() => server.client.call("statFile", { ...at, path: "errors/two", user: "no-such-user" }), "invalid_input"],
    ] as const;
    for (const [refused, code] of refusals) await expect(refused()).rejects.toMatchObject({ code });
    expect(await read("errors/full/one")).toBe("1\n");
  });

  test("BOX-4: with a newline, a space or bytes that are no UTF-8 in their name come and go unchanged", async () => {
    await server.sh(
      box,
      `mkdir odd; cd odd; printf raw > "$(printf 'raw\\351\\377')"; printf line > "$(printf 'a\\nb')"; printf space > ' x '`,
    );
    const { entries } = await server.client.call("listFiles", { sandbox: box, path: "odd" });
    expect(entries.map(({ path }) => path).toSorted()).toEqual([" x ", "a\nb", "raw\udce9\udcff"].toSorted());
    for (const { path } of entries) {
      expect(await server.client.call("statFile", { sandbox: box, path: `odd/${path}` })).toMatchObject({ type: "file" });
      await server.client.call("moveFile", { sandbox: box, path: `odd/${path}`, to: `odd/moved ${path}` });
    }
    expect((await server.sh(box, "cd odd; ls -b")).stdout).toBe("moved\\ \\ x\\ \nmoved\\ a\\nb\nmoved\\ raw\\351\\377\n");
    expect(await read("odd/moved raw\udce9\udcff")).toBe("raw");
    await server.client.writeFile(box, "odd/new\udcfe", bytes("new"));
    expect((await server.sh(box, `cat odd/new*; ls -b odd | tail -1`)).stdout).toBe("newnew\\376\n");
    await server.client.call("removeFile", { sandbox: box, path: "odd/new\udcfe" });
  });

  test("BOX-4: obey the rights of the user they are asked for", async () => {
    await server.sh(box, "mkdir -m 700 closed; echo secret > closed/file; mkdir -m 777 /tmp/open");
    await expect(server.client.readFile(box, "closed/file", "nobody")).rejects.toMatchObject({ code: "denied" });
    await expect(server.client.writeFile(box, "closed/other", bytes("x"), { user: "nobody" })).rejects.toMatchObject({ code: "denied" });
    await expect(server.client.call("removeFile", { sandbox: box, path: "closed/file", user: "nobody" })).rejects.toMatchObject({
      code: "denied",
    });
    const entry = await server.client.writeFile(box, "/tmp/open/mine", bytes("x"), { user: "nobody" });
    expect(entry.uid).toBe(65534);
    expect(await read("closed/file")).toBe("secret\n");
  });

  test("BOX-4: of a hundred megabytes arrive intact both ways", async () => {
    const sent = createHash("md5");
    const entry = await server.client.writeFile(box, "/tmp/large", manyBytes(100, sent));
    expect(entry.size).toBe(100 * MEBIBYTE);
    const expected = sent.digest("hex");
    expect((await server.sh(box, "md5sum < /tmp/large")).stdout).toBe(`${expected}  -\n`);
    const received = createHash("md5");
    for await (const chunk of (await server.client.readFile(box, "/tmp/large")).body) received.update(chunk as Buffer);
    expect(received.digest("hex")).toBe(expected);
    await server.client.call("removeFile", { sandbox: box, path: "/tmp/large" });
  });

  test("BOX-4: many at once go in and come out as an archive", async () => {
    await server.sh(
      box,
      "mkdir -p many/a/b; for i in $(seq 300); do echo $i > many/a/$i; done; printf '#!/bin/sh\\n' > many/a/b/run; chmod 755 many/a/b/run; ln -s ../1 many/a/b/link",
    );
    const archive = await buffer(await server.client.packFiles(box, "many"));
    const listed = spawnSync("tar", ["-tvf", "-"], { input: archive, encoding: "utf8" });
    expect(listed.status).toBe(0);
    expect(listed.stdout.match(/\n/g)?.length).toBeGreaterThan(302);
    expect(listed.stdout).toMatch(/-rwxr-xr-x.* a\/b\/run/);
    await server.client.call("makeFolder", { sandbox: box, path: "again" });
    const folder = join(server.place, "upload");
    spawnSync("sh", ["-c", `mkdir -p ${folder}/x/y; for i in $(seq 300); do echo $i > ${folder}/x/$i; done; echo deep > ${folder}/x/y/z`]);
    const packed = spawnSync("tar", ["-C", folder, "-cf", "-", "."], { maxBuffer: 64 * MEBIBYTE }).stdout;
    expect(await server.client.unpackFiles(box, "again", bytes(packed))).toMatchObject({ files: 301 });
    expect((await server.sh(box, "cat again/x/y/z; ls again/x | wc -l; cat again/x/* 2>/dev/null | wc -l")).stdout).toBe(
      "deep\n301\n300\n",
    );
  });

  test("BOX-4: are watched: what is made, changed, moved and removed is told, also in new folders below", async () => {
    await server.sh(box, "mkdir watched");
    const stop = new AbortController();
    const seen: FileChange[] = [];
    const watching = (async () => {
      for await (const change of server.client.watchFiles(box, "watched", { recursive: true, signal: stop.signal })) seen.push(change);
    })();
    // The watch is in place once it tells of anything.
    await eventually(
      () => server.sh(box, "touch watched/probe"),
      () => seen.length > 0,
    );
    await server.sh(box, "cd watched; echo 1 > one; mv one two; mkdir below");
    await eventually(
      () => seen,
      (changes) => changes.some(({ path }) => path === "below"),
    );
    await server.sh(box, "cd watched; echo 1 > below/three; rm two");
    await eventually(
      () => seen,
      (changes) => changes.some(({ change, path }) => change === "removed" && path === "two"),
    );
    await eventually(
      () => seen,
      (changes) => changes.some(({ path }) => path === "below/three"),
    );
    expect(seen).toContainEqual({ change: "created", path: "one" });
    stop.abort();
    await watching;
  });

  test("BOX-4: are put, shown, listed, moved and removed from the command line", () => {
    const at = { cwd: server.project, input: "from stdin\n" };
    expect(viv(server, ["files", "put", "files", "cli/new.txt"], at)).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringMatching(/^viv: .*cli\/new\.txt.*\n/),
    });
    expect(viv(server, ["files", "put", "files", "cli/new.txt"], at).err).not.toContain("destroy");
    expect(viv(server, ["files", "put", "--parents", "--mode", "600", "files", "cli/new.txt"], at)).toMatchObject({ code: 0 });
    expect(viv(server, ["files", "cat", "files", "cli/new.txt"])).toMatchObject({ code: 0, out: "from stdin\n", err: "" });
    expect(JSON.parse(viv(server, ["files", "stat", "--json", "files", "cli/new.txt"]).out)).toMatchObject({ size: 11, mode: "600" });
    expect(viv(server, ["files", "mv", "files", "cli/new.txt", "cli/old.txt"])).toMatchObject({ code: 0 });
    expect(viv(server, ["files", "ls", "files", "cli"]).out).toContain("old.txt");
    expect(viv(server, ["files", "rm", "files", "cli"]).code).toBe(2);
    expect(viv(server, ["files", "rm", "--recursive", "files", "cli"])).toMatchObject({ code: 0 });
    expect(viv(server, ["files", "put", "--from", "/no/such/file", "files", "x"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("/no/such/file"),
    });
    expect(existsSync(join(server.project, "cli"))).toBe(false);
  });

  test("BOX-4: an upload of a large file into a missing folder is refused at once, with one sentence", () => {
    const large = join(server.place, "large");
    writeFileSync(large, Buffer.alloc(30 * MEBIBYTE));
    const refused = viv(server, ["files", "put", "--from", large, "files", "/no/such/folder/file"]);
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("/no/such/folder/file") });
    expect(refused.err.trim().split("\n").length).toBeLessThanOrEqual(2);
  });
});
