/** CLONE-4: no secret of the host exists inside, now or when it appears later. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CANARY, plantHome, scanFor, type Home } from "../support/canaries.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const PLACES = ["/root", "/home", "/etc", "/var", "/tmp", "/run", "/opt", "/srv", "/mnt", "/media", "/boot", "/dev/shm"];

for (const storage of ["btrfs", "plain"] as const) {
  describe(`secrets of the host (${storage})`, storage === "btrfs" ? needs("root", "btrfs") : needs("root"), () => {
    let server: TestServer;
    let box: string;
    let home: Home;
    let other: Home;
    let later: string;
    let systemFile: string;
    /** Files and folders that others may not read, in places where a mask entry stands beside them, and a disk in a home. */
    let shut: string[];
    let disk: string;

    beforeAll(async () => {
      home = plantHome();
      other = plantHome();
      later = mkdtempSync("/srv/viv-test-");
      chmodSync(later, 0o755);
      systemFile = `/etc/viv-test-${process.pid}`;
      writeFileSync(systemFile, CANARY, { mode: 0o600 });
      shut = ["/etc/ssh", "/etc/apt", "/srv", "/opt"]
        .filter((folder) => existsSync(folder))
        .map((folder) => mkdtempSync(join(folder, "viv-test-")));
      for (const folder of shut) writeFileSync(join(folder, "key"), CANARY, { mode: 0o600 });
      disk = mountDisk(home.path, storage === "btrfs" ? "ext4" : "ext2");
      server = await TestServer.start({
        config: { storage, mask: [join(later, "secret"), join(later, "not/yet/there")] },
        env: { HOME: home.path, SERVER_SECRET: CANARY },
        files: { "hello.txt": "hello\n", "seen.txt": `${CANARY}\n` },
      });
      writeFileSync(join(server.paths.home, "note"), CANARY);
      box = (
        await server.create({ env: { HOME: home.path, PATH: "/usr/bin:/bin", AWS_SECRET_ACCESS_KEY: CANARY, DATABASE_PASSWORD: CANARY } })
      ).id;
    });
    afterAll(async () => {
      await server?.remove();
      execFileSync("umount", ["--lazy", disk]);
      for (const each of [home, other]) each?.remove();
      for (const path of [later, systemFile, ...shut]) rmSync(path, { recursive: true, force: true });
    });

    test("CLONE-4: of all planted secrets none is readable inside by root, though the same scan finds them outside", async () => {
      const found = await server.sh(box, scanFor(PLACES), { user: "root" });
      expect(found.stdout).toBe(`${join(server.project, "seen.txt")}\n`);
      const outside = execFileSync("sh", ["-c", scanFor([home.path, other.path, server.paths.home, systemFile, ...shut])], {
        encoding: "utf8",
      })
        .trim()
        .split("\n");
      expect(outside.filter((path) => path.startsWith(home.path))).toHaveLength(home.secrets + 2);
      expect(outside).toEqual(
        expect.arrayContaining([
          systemFile,
          join(disk, "key"),
          ...shut.map((folder) => join(folder, "key")),
          join(server.paths.home, "note"),
          `/proc/${server.pid}/environ`,
        ]),
      );
    });

    test("CLONE-4: what a snapshot and a fork hold is as clean", async () => {
      const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box });
      const fork = sandboxes[0]?.id ?? "";
      expect((await server.sh(fork, scanFor(PLACES), { user: "root" })).stdout).toBe(`${join(server.project, "seen.txt")}\n`);
      await server.client.call("removeSandbox", { sandbox: fork });
    });

    test("CLONE-4: masked paths that appear in reality later stay invisible", async () => {
      const paths = [join(later, "secret"), join(later, "not/yet/there"), join(home.path, ".vault-token"), "/var/tmp/viv-test-later"];
      mkdirSync(join(later, "not/yet"), { recursive: true });
      for (const path of paths) writeFileSync(path, CANARY);
      writeFileSync(join(later, "shown"), "shown\n");
      const fresh = await server.create({ env: { HOME: home.path } });
      for (const sandbox of [box, fresh.id]) {
        expect((await server.sh(sandbox, `cat ${paths.join(" ")} 2>/dev/null; cat ${join(later, "shown")}`, { user: "root" })).stdout).toBe(
          "shown\n",
        );
      }
      expect((await server.sh(box, `echo mine > ${paths[0]}; cat ${paths[0]}`, { user: "root" })).stdout).toBe("mine\n");
      expect(readFileSync(paths[0] ?? "", "utf8")).toBe(CANARY);
      rmSync("/var/tmp/viv-test-later");
      await server.client.call("removeSandbox", { sandbox: fresh.id });
    });

    test("CLONE-4: what became secret a moment ago is in no sandbox made after it, also in one that was made ahead", async () => {
      const opened = mkdtempSync("/opt/viv-test-");
      chmodSync(opened, 0o755);
      const places = [join(opened, "closed"), join(opened, "moved"), join(opened, "folder/deep"), `${systemFile}-new`];
      const [closed = "", moved = "", deep = "", made = ""] = places;
      writeFileSync(closed, CANARY, { mode: 0o644 });
      const seen = async (sandbox: string): Promise<string> =>
        (await server.sh(sandbox, `cat ${places.join(" ")} 2>/dev/null`, { user: "root" })).stdout;
      try {
        const control = await server.create({ env: { HOME: home.path } });
        expect(await seen(control.id)).toBe(CANARY);
        const known = (await server.client.call("listSandboxes", {})).sandboxes.length;
        // Those with a way out: a launch that waits for whatever is made next has none yet.
        const run = join(server.paths.home, "run");
        await expect.poll(() => readdirSync(run).filter((name) => existsSync(join(run, name, "gateway"))).length).toBe(known + 1);
        chmodSync(closed, 0o600);
        writeFileSync(made, CANARY, { mode: 0o600 });
        writeFileSync(`${opened}-aside`, CANARY, { mode: 0o600 });
        renameSync(`${opened}-aside`, moved);
        mkdirSync(join(opened, "folder"), { mode: 0o700 });
        writeFileSync(deep, CANARY);
        const fresh = await server.create({ env: { HOME: home.path } });
        expect(await seen(fresh.id)).toBe("");
        const { sandboxes } = await server.client.call("forkSandbox", { sandbox: control.id });
        expect(await seen(sandboxes[0]?.id ?? "")).toBe("");
        for (const { id } of [control, fresh, ...sandboxes]) await server.client.call("removeSandbox", { sandbox: id });
      } finally {
        for (const path of [opened, made, `${opened}-aside`]) rmSync(path, { recursive: true, force: true });
      }
    });

    test("CLONE-4: toolchains of the home folder are there, copy-on-write, without their logins", async () => {
      const line =
        "cd ~; cat .nvm/versions/tool .cargo/bin/tool; echo changed > .nvm/versions/tool; echo new > .nvm/new; cat .nvm/versions/tool; ls .cargo/credentials.toml .npm/_logs 2>&1 | grep -c 'No such'";
      expect((await server.sh(box, line)).stdout).toBe("a tool\na tool\nchanged\n2\n");
      expect(readFileSync(join(home.path, ".nvm/versions/tool"), "utf8")).toBe("a tool\n");
      expect(existsSync(join(home.path, ".nvm/new"))).toBe(false);
    });

    test("CLONE-4: settings keep where packages come from and lose every login", async () => {
      expect((await server.sh(box, "cat ~/.npmrc")).stdout).toBe("registry=https://packages.example.com/\nsave-exact=true\n");
      const git = (await server.sh(box, "cat ~/.gitconfig")).stdout;
      expect(git).toContain("name = Someone");
      expect(git).not.toContain("helper");
      expect((await server.sh(box, "cut -d: -f2 /etc/shadow | sort -u | tr -d '\\n'", { user: "root" })).stdout).toMatch(/^[!*]*$/);
    });

    test("CLONE-4: variables that look secret are left out and named", async () => {
      expect((await server.client.call("inspectSandbox", { sandbox: box })).environmentLeftOut).toEqual([
        "AWS_SECRET_ACCESS_KEY",
        "DATABASE_PASSWORD",
      ]);
      expect((await server.sh(box, "env")).stdout).not.toContain(CANARY);
    });
  });
}

/** A disk of its own, mounted inside a home folder. ext2 can't be id-mapped and must not keep a sandbox from being launched. */
function mountDisk(home: string, type: "ext2" | "ext4"): string {
  const target = join(home, "disk");
  mkdirSync(target);
  execFileSync("truncate", ["-s", "8M", join(home, "image")]);
  execFileSync("mke2fs", ["-q", "-t", type, join(home, "image")]);
  execFileSync("mount", ["-o", "loop", join(home, "image"), target]);
  writeFileSync(join(target, "key"), CANARY);
  execFileSync("sync", ["-f", target]);
  return target;
}
