/** Machines of other shapes: folders that are links, a root as containers have it, a state folder on an overlay. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PROGRAM, USER_CACHE } from "../support/compiled.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** An id that belongs to no account. */
const UID = 64_129;
const CHECKOUT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
/** Where Node lies, which a container's / does not show if it is on a disk of its own. */
const PROGRAMS = dirname(dirname(realpathSync(process.execPath)));

function lay(folder: string, files: Readonly<Record<string, string>>, uid: number): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  execFileSync("chown", ["-R", `${uid}:${uid}`, folder]);
}

/** What becomes the server: the script, in a mount namespace of its own, then the user. */
function through(uid: number, script: string): string[] {
  return ["unshare", "--mount", "sh", "-ec", `${script}\nexec setpriv --reuid ${uid} --regid ${uid} --clear-groups "$@"`, "sh"];
}

describe.each([
  ["root", 0],
  ["an ordinary user", UID],
])("on a machine whose folders are links, a sandbox of %s", needs("root", "user-namespaces", "open-checkout"), (_, uid) => {
  let place: string;
  let server: TestServer;
  let box: string;

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-machines-"));
    const files = {
      "disk/secret/file": "canary",
      "disk/database/rows": "canary",
      "disk/open/file": "in sight",
      "disk/users/me/notes": "canary",
      "disk/users/stranger/notes": "canary",
      "disk/users/me/.nvm/tool": "tool",
      "home/stray": "canary",
      "lib/other/file": "beside",
    };
    lay(place, files, uid);
    chmodSync(place, 0o755);
    symlinkSync("disk", join(place, "data"));
    symlinkSync("/srv/data/users/me", join(place, "home/me"));
    symlinkSync("/srv/data/database", join(place, "lib/postgresql"));
    const binds = `for pair in .:/srv home:/home lib:/var/lib; do mount --bind ${place}/\${pair%:*} \${pair#*:}; done`;
    server = await TestServer.start({
      uid,
      through: through(uid, binds),
      env: { HOME: "/home/me" },
      files: { "hello.txt": "hello\n", "vivarium.json": '{ "mask": ["/srv/data/secret"] }' },
    });
    box = (await server.create()).id;
  });
  afterAll(async () => {
    await server?.remove();
    rmSync(place, { recursive: true, force: true });
  });

  const inside = async (line: string): Promise<string> => (await server.sh(box, `${line} 2>&1`)).stdout.trim();

  test("CLONE-4: sees nothing of what the links of hidden folders lead to", async () => {
    expect(await inside("cat /srv/data/open/file /srv/disk/open/file /var/lib/other/file")).toBe("in sightin sightbeside");
    for (const path of ["secret/file", "database/rows", "users/me/notes", "users/stranger/notes"])
      expect(await inside(`cat /srv/disk/${path} /srv/data/${path}`)).not.toContain("canary");
    expect(await inside("cat /home/stray /home/me/notes /var/lib/postgresql/rows")).not.toContain("canary");
  });

  test("CLONE-1: has the toolchains of a home that is a link, at both of its names", async () => {
    expect(await inside("cat /home/me/.nvm/tool /srv/disk/users/me/.nvm/tool")).toBe("tooltool");
    expect(await inside("echo mine > /home/me/new; cat /srv/disk/users/me/new")).toBe("mine");
  });

  test("SNAP-2: finds its changes to a toolchain again when reality has another one by then", async () => {
    await inside("echo changed > /home/me/.nvm/tool");
    const { id } = await server.client.call("createSnapshot", { sandbox: box });
    lay(join(place, "disk/users/me/.bun"), { tool: "later" }, uid);
    // The next server looks at the machine anew.
    await server.down();
    await server.up();
    await server.client.call("rollback", { sandbox: box, snapshot: id });
    expect(await inside("cat /home/me/.nvm/tool /home/me/.bun/tool; ls /home/me/.bun")).toBe("changed\nlatertool");
  });
});

/** Becomes a container: / is an overlay that ends with the namespace, with the kernel's folders and `kept` of the machine. */
function container(kept: readonly string[]): string {
  return `
    mount -t tmpfs none /mnt
    mkdir /mnt/upper /mnt/work /mnt/root
    mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
    cd /mnt/root
    rm -rf home
    mkdir -p var/home/me/.nvm code old
    ln -s var/home home
    echo canary | tee var/home/stray > var/home/me/notes
    echo tool > var/home/me/.nvm/tool
    for folder in /proc /dev /sys ${kept.join(" ")}; do mkdir -p .$folder; mount --rbind $folder .$folder; done
    pivot_root . old
    umount -l /old
    cd /`;
}

describe.each([
  ["root", 0],
  ["an ordinary user", UID],
])("in a container, a sandbox of %s", needs("root", "user-namespaces", "open-checkout"), (_, uid) => {
  let server: TestServer;
  let box: string;

  beforeAll(async () => {
    const script = `${container([tmpdir(), CHECKOUT, PROGRAMS])}\nchown -R ${uid}:${uid} /var/home/me`;
    server = await TestServer.start({ uid, through: through(uid, script), env: { HOME: "/home/me" } });
    box = (await server.create()).id;
  });
  afterAll(async () => server?.remove());

  const inside = async (line: string): Promise<string> => (await server.sh(box, `${line} 2>&1`)).stdout.trim();

  test("CLONE-1: starts although / takes no id map, with a home behind a link at the top", async () => {
    expect(await inside("cat hello.txt /home/me/.nvm/tool; id -u")).toBe(`hello\ntool\n${uid}`);
    expect(await inside("echo a > /home/me/new; cat /var/home/me/new; readlink /home")).toBe("a\nvar/home");
    expect(await inside("cat /var/home/stray /home/stray /home/me/notes")).not.toContain("canary");
  });

  test("CLONE-3: changes nothing of it, nor of the kernel", async () => {
    const writable = "test -w /proc/sys/vm/drop_caches";
    execFileSync("sh", ["-c", writable]);
    expect(await inside(`echo x > /usr/new && cat /usr/new; ${writable} || echo refused`)).toBe("x\nrefused");
    expect(await inside("unshare --user --map-root-user --mount true || echo refused")).toContain("refused");
    const fresh = (await server.create()).id;
    expect((await server.sh(fresh, "ls /usr/new 2>&1 || echo absent")).stdout).toContain("absent");
  });
});

describe("with a state folder on the overlay of a container", needs("root", "user-namespaces", "open-checkout", "btrfs"), () => {
  const viv = (uid: number, lines: string): string => {
    const script = `${container([CHECKOUT, PROGRAMS])}
      mkdir -m 711 /state; mkdir -m 700 /state/own; git init -q /code; echo hello > /code/hello.txt; chown -R ${uid}:${uid} /code /state/own /var/home/me
      export VIV_HOME=/state/own VIV_CONFIG=/state/none HOME=/home/me XDG_CACHE_HOME=${USER_CACHE} PATH=${dirname(process.execPath)}:$PATH; cd /code`;
    const [program, ...args] = [...through(uid, script), "sh", "-c", `viv() { ${PROGRAM} "$@"; }; ${lines}`];
    return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  };

  test("CLONE-1: root's sandboxes lie in a pool, and their mask beside it", () => {
    const said = viv(0, "viv create --name one; viv exec one -- cat hello.txt /var/home/stray 2>&1; viv prune --all; viv down");
    expect(said).toContain("hello\n");
    expect(said).toContain("No such file");
  });

  test("DRV-4: an ordinary user is told that it can't be, and why", () => {
    const said = viv(UID, "viv create 2>&1; viv doctor 2>&1; viv down");
    expect(said).toContain("can't put walls around a sandbox");
    expect(said).toContain("The state folder lies on overlayfs");
  });
});

test.each(["a folder", "a disk of its own"])(
  "CLONE-1: an ordinary user whose home lies in the folder for temporary files, which is %s, has its toolchains",
  needs("root", "user-namespaces", "open-checkout"),
  async (kind) => {
    const home = mkdtempSync("/tmp/viv-machines-");
    lay(home, { ".nvm/tool": "tool", notes: "canary" }, UID);
    const script = kind === "a folder" ? "true" : "mount --bind /tmp /tmp";
    const server = await TestServer.start({ uid: UID, through: through(UID, script), env: { HOME: home } });
    const { id } = await server.create();
    expect((await server.sh(id, `cat ${home}/.nvm/tool; ls -A ${home}`)).stdout).toBe("tool.nvm\n");
    await server.remove();
    rmSync(home, { recursive: true, force: true });
  },
);
