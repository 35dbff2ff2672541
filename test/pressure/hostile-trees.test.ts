/** What a sandbox leaves on its disk is looked at from outside: no name, depth, time, size or link of it may confuse that. */
import { readdirSync } from "node:fs";
import { dirname } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** Folders in folders, far beyond what a path can name. */
const DEEP = `perl -e 'mkdir q(deep); chdir q(deep); for (1..2000) { mkdir q(d) x 20; chdir q(d) x 20 or die; } open(F, q(>), q(bottom))'`;
const NAMES = `perl -e 'for my $n ("new\\nline", "\\xff\\xfe", "-rf", "\\e]0;x\\a", "a\\x1fb", "\\xe2\\x80\\xae.txt", " ", "\\\\", q(%s%n), "__proto__", "x" x 255) { open(F, q(>), "names/$n") or die $n; print F "1" }'`;

for (const storage of ["btrfs", "plain"] as const) {
  describe(`a hostile tree on ${storage}`, storage === "btrfs" ? needs("root", "btrfs") : needs("root"), () => {
    let server: TestServer;
    let box: string;

    beforeAll(async () => {
      server = await TestServer.start({
        config: { storage },
        files: { "hello.txt": "hello\n", "src/main": "good\n", "src/a/one": "1\n", "samples/main": "evil\n", "samples/deep/x": "x\n" },
      });
    });
    beforeEach(async () => {
      box = (await server.create()).id;
    });
    afterEach(async () => {
      for (const { id } of (await server.client.call("listSandboxes", {})).sandboxes)
        await server.client.call("removeSandbox", { sandbox: id });
    });
    afterAll(async () => server?.remove());

    /** Everything that walks the tree from outside. */
    async function survives(): Promise<string[]> {
      const { entries } = await server.client.call("diffSandbox", { sandbox: box, stat: true });
      const snapshot = await server.client.call("createSnapshot", { sandbox: box });
      const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box });
      expect((await server.sh(sandboxes[0]?.id ?? "", "cat hello.txt")).stdout).toBe("hello\n");
      await server.client.call("rollback", { sandbox: box, snapshot: snapshot.id });
      expect((await server.sh(box, "cat hello.txt")).stdout).toBe("hello\n");
      return entries.map(({ path }) => path);
    }

    test("folders deeper than any path", async () => {
      expect((await server.sh(box, DEEP)).end?.exitCode).toBe(0);
      // cp, which plain storage uses, names whole paths: the snapshot is refused in words, and the sandbox goes on.
      const refusal = (error: Error): string[] => [error.message.includes("File name too long") ? "deep" : error.message];
      const seen = storage === "btrfs" ? survives() : server.client.call("createSnapshot", { sandbox: box }).then(() => [], refusal);
      expect(await seen).toContain("deep");
      const archive = server.client.packFiles(box, "deep").then(buffer);
      await expect(
        archive.then(
          () => "packed",
          ({ code }: { code: string }) => code,
        ),
      ).resolves.toMatch(/packed|invalid_input|server_unreachable/);
      expect((await server.client.call("listFiles", { sandbox: box, path: "deep", depth: 100 })).entries.length).toBeGreaterThan(50);
    });

    test("names of any bytes", async () => {
      expect((await server.sh(box, `mkdir names; ${NAMES}`)).end?.exitCode).toBe(0);
      expect((await survives()).filter((path) => path.startsWith("names/"))).toHaveLength(11);
      expect((await server.client.call("listFiles", { sandbox: box, path: "names" })).entries).toHaveLength(11);
      expect((await buffer(await server.client.packFiles(box, "names"))).length).toBeGreaterThan(11 * 512);
    });

    test("times and sizes beyond reason", async () => {
      const line =
        "mkdir odd; touch -d @9999999999999 odd/future; touch -d @-9999999999 odd/past; truncate -s 7E odd/huge || truncate -s 15T odd/huge; touch -d @9999999999999 odd";
      expect((await server.sh(box, line)).end?.exitCode).toBe(0);
      expect((await server.client.call("listFiles", { sandbox: box, path: "odd" })).entries).toHaveLength(3);
      for (const name of ["future", "past", "huge"])
        expect((await server.client.call("statFile", { sandbox: box, path: `odd/${name}` })).type).toBe("file");
      const { body } = await server.client.readFile(box, "odd/future");
      expect(await buffer(body)).toHaveLength(0);
      await server.sh(box, "rm odd/huge");
      expect((await buffer(await server.client.packFiles(box, "odd"))).length).toBeGreaterThan(1024);
      await survives();
    });

    test("many sparse files fill no disk of the host when their lines are counted", async () => {
      expect(
        (await server.sh(box, "mkdir sparse; cd sparse; for n in $(seq 100); do truncate -s 8M $n; done; echo line > zz")).end?.exitCode,
      ).toBe(0);
      const { entries } = await server.client.call("diffSandbox", { sandbox: box, stat: true });
      expect(entries.filter(({ path }) => path.startsWith("sparse/"))).toHaveLength(101);
      // 256 MiB are copied, and not the 800 that they seem to hold.
      expect(entries.find(({ path }) => path === "sparse/zz")).toMatchObject({ added: null });
      await server.sh(box, "rm -r sparse/*; echo line > sparse/zz");
      const after = await server.client.call("diffSandbox", { sandbox: box, stat: true });
      expect(after.entries.find(({ path }) => path === "sparse/zz")).toMatchObject({ added: 1 });
      expect(after.more).toBe(false);
    });

    test("a change behind thousands of long names is listed, and one deeper than any path is not kept quiet", async () => {
      expect((await server.sh(box, DEEP)).end?.exitCode).toBe(0);
      expect((await server.client.call("diffSandbox", { sandbox: box })).more).toBe(true);
      const crowd = `rm -rf deep; mkdir -p crowd/${"d".repeat(200)}; cd crowd/*; perl -e 'for (1..6000) { open(F, q(>), $_) or die }'`;
      expect((await server.sh(box, `${crowd}; cd ../..; echo evil >> hello.txt`)).end?.exitCode).toBe(0);
      const { entries, more } = await server.client.call("diffSandbox", { sandbox: box });
      expect([entries.some(({ path }) => path === "hello.txt"), more]).toEqual([true, false]);
    });

    test("a folder renamed over another is told with all that came along", async () => {
      expect((await server.sh(box, "mv src old; mv samples src; mv src/deep src/deeper; echo 2 > old/a/two")).end?.exitCode).toBe(0);
      const { entries, more } = await server.client.call("diffSandbox", { sandbox: box });
      const there = entries.filter(({ status }) => status !== "deleted").map(({ path }) => path);
      const came = ["old", "old/a", "old/a/one", "old/a/two", "old/main", "src/deeper", "src/deeper/x", "src/main"];
      expect([there.toSorted(), more]).toEqual([came, false]);
      const gone = entries.filter(({ status }) => status === "deleted").map(({ path }) => path);
      expect(gone).toEqual(expect.arrayContaining(["samples", "samples/deep/x", "samples/main", "src/a/one"]));
    });

    test("files that turned into other kinds, loops and links out of the project", async () => {
      const line =
        "rm hello.txt; mkfifo hello.txt; ln -s / root; ln -s root/root loop; ln -s /proc/self/root self; rm -rf .git; ln -s /etc .git; mkdir -p a/b; ln a/../root a/b/hard 2>/dev/null; ln -s ../../../../../../../../etc/passwd a/up; true";
      await server.sh(box, line);
      const { entries } = await server.client.call("diffSandbox", { sandbox: box, stat: true });
      expect(entries.map(({ path }) => path)).toEqual(expect.arrayContaining(["root", "loop", "self", "a/up"]));
      expect(entries.filter(({ path }) => path.startsWith("root/") || path.startsWith("self/"))).toEqual([]);
    });

    test("FS-10: a system whose folders were moved away or turned into links is launched again or refused cleanly", async () => {
      const clean = await server.client.call("createSnapshot", { sandbox: box, name: "clean" });
      const parent = dirname(server.project);
      const line = `mv ${parent} /var/tmp/away && ln -s /etc ${parent}; rm -rf /tmp.old; mv /usr/share /usr/share2; ln -s /etc /usr/share; rm -rf /mnt /media; ln -s / /mnt; mkdir -p /etc/project`;
      await server.sh(box, line, { user: "root" });
      const before = readdirSync("/etc");
      const forked = await server.client.call("forkSandbox", { sandbox: box }).then(
        () => "made",
        ({ code }: { code: string }) => code,
      );
      expect(forked).toMatch(/^(made|cell_failed)$/);
      expect(readdirSync("/etc")).toEqual(before);
      await server.client.call("rollback", { sandbox: box, snapshot: clean.id });
      expect((await server.sh(box, "cat hello.txt; ls -d /usr/share/. /mnt/.")).stdout).toBe("hello\n/mnt/.\n/usr/share/.\n");
      expect((await server.client.call("listSandboxes", {})).sandboxes.filter(({ state }) => state === "creating")).toEqual([]);
    });
  });
}
