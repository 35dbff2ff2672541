/** Machines whose folders hold mounts: a home on a disk of its own, a disk that is masked, mounts in folders of the system. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** An id that belongs to no account. */
const UID = 64_127;
const DISK = {
  "home/top": "canary",
  "home/me/.nvm/tool": "tool",
  "home/me/.nvm/.npmrc": "setting",
  "home/me/.ssh/key": "canary",
  "home/me/notes": "canary",
  "disk/file": "on the disk",
  "masked/file": "canary",
  "exports/kept/file": "shown",
};

describe.each([
  ["root", 0],
  ["an ordinary user", UID],
])("on a machine with many mounts, a sandbox of %s", needs("root", "user-namespaces", "open-checkout"), (_, uid) => {
  let place: string;
  let server: TestServer;
  let box: string;

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-mounts-"));
    for (const [path, content] of Object.entries(DISK)) {
      mkdirSync(dirname(join(place, path)), { recursive: true });
      writeFileSync(join(place, path), content);
    }
    execFileSync("chown", ["-R", `${uid}:${uid}`, place]);
    // In a mount namespace of the server's own.
    const script = `
      set -e
      mount --bind ${place}/home /home
      mount --bind ${place}/masked /srv
      for folder in /opt /var/local; do mount --bind ${place}/disk $folder; done
      mount --bind ${place}/exports /usr/local/src
      for folder in home masked; do mkdir -p ${place}/exports/$folder; mount --bind ${place}/$folder /usr/local/src/$folder; done
      mount --bind /var/lib/dpkg /var/lib/dpkg
      mount -t tmpfs none /usr/local/games
      mkdir /usr/local/games/below
      mount --bind /etc/os-release /etc/hostname
      exec setpriv --reuid ${uid} --regid ${uid} --clear-groups "$@"`;
    server = await TestServer.start({
      uid,
      through: ["unshare", "--mount", "sh", "-c", script, "sh"],
      env: { HOME: "/home/me" },
      files: { "hello.txt": "hello\n", "vivarium.json": '{ "mask": ["/srv"] }' },
    });
    box = (await server.create()).id;
  });
  afterAll(async () => {
    await server?.remove();
    rmSync(place, { recursive: true, force: true });
  });

  const inside = async (line: string): Promise<string> => (await server.sh(box, `${line} 2>&1`)).stdout.trim();

  test("CLONE-1: sees the disks, and all that lies beside them", async () => {
    expect(await inside("cat hello.txt /opt/file /var/local/file")).toBe("hello\non the diskon the disk");
    expect(await inside("ls /usr/local/games")).toBe("");
    expect(await inside("ls -d /usr/bin/env /usr/local/bin /var/lib/dpkg /etc/passwd")).toBe(
      "/etc/passwd\n/usr/bin/env\n/usr/local/bin\n/var/lib/dpkg",
    );
    expect(await inside("id -un root; test -L /etc/mtab && echo link")).toBe("root\nlink");
    // One overlay over / shows what a mounted file covers; piece by piece, the file itself is shown.
    expect((await inside("cat /etc/hostname")).startsWith("PRETTY_NAME")).toBe(uid !== 0);
  });

  test("CLONE-4: sees nothing of a home or a masked folder that is a disk of its own", async () => {
    expect(await inside("ls -A /home /home/me")).toBe("/home:\nme\n\n/home/me:\n.nvm");
    expect(await inside("cat /home/me/.nvm/tool")).toBe("tool");
    expect(await inside("cat /home/top /home/me/notes /home/me/.ssh/key /srv/file | grep -c canary")).toBe("0");
    expect(await inside("ls -A /srv | wc -l")).toMatch(/0$/);
  });

  test("CLONE-4: sees nothing of them where another mount shows the same", async () => {
    expect(await inside("cat /usr/local/src/kept/file")).toBe("shown");
    expect(await inside("find /usr/local/src/home /usr/local/src/masked -type f 2>/dev/null; true")).toBe("");
    const outside = ["-t", String(server.pid), "-m", "cat", "/usr/local/src/home/top", "/usr/local/src/masked/file"];
    expect(execFileSync("nsenter", outside, { encoding: "utf8" })).toBe("canarycanary");
  });

  test("PROM-1: tells what it changed on disks of their own, packages included", async () => {
    const made = (await server.create()).id;
    const stanza = "\nPackage: viv-test\nStatus: install ok installed\nVersion: 1.0\n";
    const status = uid === 0 ? `printf '${stanza.replaceAll("\n", "\\n")}' >> /var/lib/dpkg/status` : "true";
    await server.sh(made, `echo new > /opt/new; echo new > /home/me/.nvm/new; ${status}`, { user: String(uid) });
    const { folders, packages } = await server.client.call("diffSystem", { sandbox: made });
    expect(folders).toContainEqual({ path: "/opt", added: 1, changed: 0, deleted: 0 });
    expect(folders).toContainEqual({ path: "/home/me", added: 1, changed: 0, deleted: 0 });
    expect(packages).toEqual(uid === 0 ? [{ manager: "dpkg", name: "viv-test", old: null, new: "1.0" }] : []);
    await server.client.call("removeSandbox", { sandbox: made });
  });

  test("CLONE-3: changes nothing of reality there", async () => {
    const wrote = await inside("echo x >> /home/me/.nvm/tool; echo y > /home/me/.nvm/new; cat /home/me/.nvm/tool /home/me/.nvm/new");
    expect(wrote).toBe("toolx\ny");
    expect(await inside("echo z > /opt/file; cat /opt/file")).toBe("z");
    const fresh = (await server.create()).id;
    expect((await server.sh(fresh, "cat /home/me/.nvm/tool /opt/file; ls /home/me/.nvm")).stdout).toBe("toolon the disktool\n");
    await server.client.call("removeSandbox", { sandbox: fresh });
  });
});
