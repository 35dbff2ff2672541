import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MaskLayers } from "../../src/machine/capture/masks.ts";
import { CellHost } from "../../src/base/host/cell-host.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { needs } from "../support/skip.ts";
import { CELL } from "../support/storage.ts";
import { workMs } from "../support/work.ts";

const CANARY = `canary-${newId("project")}`;

/** The machine is looked at through the mask in a mount namespace of its own, where a home folder can be furnished with canaries. */
describe("the mask layer", needs("root", "linux"), () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "viv-mask-")));
  let host: CellHost;
  let masks: MaskLayers;
  beforeAll(async () => {
    host = new CellHost({ program: CELL });
    mkdirSync(join(folder, "masks"));
    mkdirSync(join(folder, "state/agents"), { recursive: true });
    masks = await MaskLayers.open({
      host,
      folder: join(folder, "masks"),
      own: [join(folder, "state")],
      ownShown: [join(folder, "state/agents")],
      mode: "root",
      mounts: true,
      mountName: "viv-mask-test",
    });
  });
  afterAll(async () => {
    await host.close();
    execFileSync("umount", [join(folder, "masks")]);
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs a script with the masked machine at $1. */
  const through = (layer: string, script: string): string => {
    const mount = `mkdir -p "$2/m" && mount -t tmpfs tmpfs "$2/m" && mkdir "$2/m/u" "$2/m/w" "$2/m/at" && mount -t overlay overlay -o "lowerdir=$1:/,upperdir=$2/m/u,workdir=$2/m/w,redirect_dir=on,index=off" "$2/m/at" && set -- "$2/m/at" && ${script}`;
    return execFileSync("unshare", ["-m", "sh", "-c", mount, "sh", layer, folder], { encoding: "utf8" });
  };

  const makeHome = (): { home: string; project: string } => {
    const home = join(folder, "person");
    const project = join(home, "code/project");
    mkdirSync(project, { recursive: true });
    chmodSync(join(home, "code"), 0o710);
    for (const [name, text] of Object.entries({
      ".ssh/id_ed25519": CANARY,
      ".aws/credentials": CANARY,
      ".config/gh/hosts.yml": CANARY,
      ".claude/.credentials.json": CANARY,
      ".bash_history": CANARY,
      ".cargo/credentials.toml": CANARY,
      ".cargo/bin/tool": "tool",
      ".nvm/node": "node",
      "code/other/file": CANARY,
      ".npm/_logs/log": CANARY,
      ".npm/_cacache/x": "cached",
      ".npmrc": `registry=https://user:${CANARY}@registry.example.org/\n//registry.example.org/:_authToken=${CANARY}\nfund=false\n`,
      ".gitconfig": `[user]\n\tname = A Person\n[credential]\n\thelper = store --${CANARY}\n[alias]\n\tst = status\n\tpwn = !${CANARY}\n[url "https://${CANARY}@example.org/"]\n\tinsteadOf = x\n`,
      ".config/pip/pip.conf": `[global]\nindex-url = https://u:${CANARY}@example.org/simple\ntimeout = 5\n`,
    })) {
      mkdirSync(join(home, name, ".."), { recursive: true });
      writeFileSync(join(home, name), text);
    }
    return { home, project };
  };

  test("CLONE-4 toolchains that the config masks, or parts of them, are not there", async () => {
    const { home, project } = makeHome();
    const layer = await masks.layer({ home, project, mask: ["~/.nvm", "~/.cargo/bin", join(home, ".npmrc")], expose: [] });
    const seen = through(layer.path, `cd "$1${home}" && find . -type f | sort`).trim().split("\n");
    expect(seen).toEqual(["./.config/pip/pip.conf", "./.gitconfig", "./.npm/_cacache/x"]);
  });

  test("CLONE-4 of a home folder only the project's path, toolchains and settings without logins exist", async () => {
    const { home, project } = makeHome();
    expect(execFileSync("grep", ["-rl", CANARY, home], { encoding: "utf8" }).split("\n").length).toBeGreaterThan(9);
    const { path, masked } = await masks.layer({ home, project, mask: [], expose: [] });
    expect(masked).toContain(home);
    expect(through(path, `grep -rl ${CANARY} "$1${home}" || true`)).toBe("");
    expect(through(path, `cd "$1${home}" && find . -type f | sort`).trim().split("\n")).toEqual([
      "./.cargo/bin/tool",
      "./.config/pip/pip.conf",
      "./.gitconfig",
      "./.npm/_cacache/x",
      "./.npmrc",
      "./.nvm/node",
    ]);
    expect(through(path, `cat "$1${home}/.npmrc"`)).toContain("registry=https://registry.example.org/");
    expect(through(path, `cat "$1${home}/.npmrc"`)).toContain("fund=false");
    expect(through(path, `cat "$1${home}/.gitconfig"`)).toMatch(/name = A Person[\s\S]*st = status/);
    expect(through(path, `cat "$1${home}/.config/pip/pip.conf"`)).toContain("timeout = 5");
    expect(through(path, `stat -c %a "$1${home}/code"; ls "$1${home}/code"`).trim().split("\n")).toEqual(["710", "project"]);
  });

  test("what is written into an emptied folder of reality later does not appear", async () => {
    const { home, project } = makeHome();
    const { path } = await masks.layer({ home, project, mask: [join(folder, "later/deep/er")], expose: [] });
    const script = `mkdir -p ${home}/.kube ${folder}/later/deep/er && echo ${CANARY} > ${home}/.kube/config && echo ${CANARY} > ${folder}/later/deep/er/x && ls -A "$1${home}" && ls "$1${folder}"`;
    const seen = through(path, script);
    rmSync(join(folder, "later"), { recursive: true });
    expect(seen).not.toContain(".kube");
    expect(seen).not.toContain("later");
  });

  test("the system's own secrets are gone, and the system still knows its users", async () => {
    const { home, project } = makeHome();
    writeFileSync(join(folder, "state/vivarium.db"), CANARY);
    writeFileSync(join(folder, "state/db"), CANARY);
    const { path } = await masks.layer({ home, project, mask: [], expose: [] });
    expect(
      through(path, `cut -d: -f2 "$1/etc/shadow" | sort -u`)
        .trim()
        .split("\n")
        .every((field) => field === "*" || field === "!"),
    ).toBe(true);
    expect(through(path, `wc -l < "$1/etc/shadow"`).trim()).toBe(
      execFileSync("sh", ["-c", "wc -l < /etc/shadow"], { encoding: "utf8" }).trim(),
    );
    expect(
      through(path, `find "$1/etc" -type f ! -perm -004 | sed "s|^$1||" | sort`)
        .trim()
        .split("\n")
        .filter(
          (file) => !/^\/etc\/(sudoers|g?shadow$|\.pwd\.lock|at\.deny|default\/cacerts|ssl\/certs|polkit-1)/.test(file) && file !== "",
        ),
    ).toEqual([]);
    const named = readFileSync("/etc/machine-id", "utf8");
    expect(through(path, `cat "$1/etc/machine-id"`)).toMatch(/^[0-9a-f]{32}\n$/);
    expect(through(path, `cat "$1/etc/machine-id" "$1/var/lib/dbus/machine-id" 2>/dev/null || true`)).not.toContain(named.trim());
    expect(
      through(path, `ls -A "$1/root" "$1/mnt" "$1/media" | grep -v : || true`)
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith(".")),
    ).toEqual([]);
    expect(through(path, `ls -A "$1${folder}/state"`)).toBe("agents\n");
    expect(through(path, `ls "$1/usr/bin/env" "$1/etc/passwd" "$1/etc/ssl/certs" > /dev/null && echo works`).trim()).toBe("works");
  });

  test("an exposed folder and file exist inside, and the folder follows reality", async () => {
    const { home, project } = makeHome();
    const { path, masked } = await masks.layer({
      home,
      project,
      mask: ["/usr/share/doc", "inside/the/project"],
      expose: ["~/.aws", "../../.bash_history"],
    });
    expect(through(path, `cat "$1${home}/.aws/credentials" "$1${home}/.bash_history"`)).toBe(CANARY + CANARY);
    expect(through(path, `ls "$1${home}/.ssh" 2>&1 || true`)).toContain("No such file");
    expect(through(path, `ls "$1/usr/share" | grep -cx doc || true`).trim()).toBe("0");
    expect(masked).toContain("/usr/share/doc");
  });

  test("CLONE-4 the deeper one of what is masked and exposed counts, and of equal ones the mask", async () => {
    const { home, project } = makeHome();
    for (const name of ["a/seen", "a/b/hidden", "a/b/c/seen", "a/b/c/d/hidden", "e/hidden"]) {
      mkdirSync(join(home, "stuff", name, ".."), { recursive: true });
      writeFileSync(join(home, "stuff", name), name);
    }
    const { path } = await masks.layer({
      home,
      project,
      mask: ["~/stuff/a/b/", "~/stuff/a/b/../b/c/d", "~/stuff/e"],
      expose: ["~/stuff/a/b/c", "~/stuff/a", "~/stuff/e"],
    });
    expect(through(path, `cd "$1${home}/stuff" && find . -type f | sort`).trim().split("\n")).toEqual(["./a/b/c/seen", "./a/seen"]);
  });

  test("CLONE-4 Vivarium's own folders are hidden whatever is exposed", async () => {
    const { home, project } = makeHome();
    mkdirSync(join(folder, "state/secrets"), { recursive: true });
    writeFileSync(join(folder, "state/secrets/key"), CANARY);
    for (const expose of [folder, join(folder, "state"), join(folder, "state/secrets"), "/"]) {
      const { path } = await masks.layer({ home, project: "/usr/share", mask: [], expose: [expose] });
      expect(through(path, `cat "$1${folder}/state/secrets/key" 2>/dev/null || true`)).toBe("");
    }
    const { path } = await masks.layer({ home, project, mask: [], expose: [join(home, ".ssh")] });
    expect(through(path, `cat "$1${home}/.ssh/id_ed25519"`)).toBe(CANARY);
  });

  test("of Vivarium's own folders the programs of agents are seen, by every user inside, and nothing beside them", async () => {
    const { home, project } = makeHome();
    const state = join(folder, "state");
    mkdirSync(join(state, "agents/claude/1.0"), { recursive: true });
    mkdirSync(join(state, "secrets"), { recursive: true });
    chmodSync(state, 0o700);
    writeFileSync(join(state, "agents/claude/1.0/claude"), "program");
    writeFileSync(join(state, "secrets/key"), CANARY);
    for (const expose of [[], ["/"], [state], [folder]]) {
      const { path } = await masks.layer({ home, project, mask: [], expose });
      expect(through(path, `cd "$1${state}" && stat -c %a . && find . -type f -exec cat {} +`)).toBe("755\nprogram");
    }
  });

  test("CLONE-4 what is masked by the name of a link is hidden where it lies", async () => {
    const { home, project } = makeHome();
    const real = mkdtempSync("/usr/local/viv-mask-");
    chmodSync(real, 0o755);
    mkdirSync(join(real, "deep"));
    for (const name of ["secret", "deep/secret", "deep/shown", "credentials.toml"]) writeFileSync(join(real, name), CANARY);
    rmSync(join(folder, "link"), { force: true });
    symlinkSync(real, join(folder, "link"));
    rmSync(join(home, ".cargo"), { recursive: true });
    symlinkSync(real, join(home, ".cargo"));
    const { path } = await masks.layer({
      home,
      project,
      mask: [join(folder, "link/secret"), join(folder, "link/deep/secret")],
      expose: [],
    });
    const seen = through(path, `cd "$1${real}" && grep -rl ${CANARY} . || true`);
    rmSync(real, { recursive: true });
    rmSync(join(home, ".cargo"));
    expect(seen).toBe("./deep/shown\n");
  });

  test("CLONE-4 folders that are always empty do not appear when reality gets them later", async () => {
    const { home, project } = makeHome();
    const missing = ["/timeshift", "/backups", "/swap"].filter((each) => !existsSync(each));
    const { path } = await masks.layer({ home, project, mask: [], expose: [] });
    const made = missing.map((each) => `mkdir ${each} && echo ${CANARY} > ${each}/file`).join(" && ");
    const gone = missing.map((each) => `rm -r ${each}`).join(" && ");
    expect(missing.length).toBeGreaterThan(0);
    expect(through(path, `${made} && { cat ${missing.map((each) => `"$1${each}/file"`).join(" ")} || true; } && ${gone}`)).toBe("");
  });

  test("CLONE-4 profiles of browsers and records of commands among the caches are hidden", async () => {
    const { home, project } = makeHome();
    const caches = [".cache/ms-playwright/chromium-1/x", ".cache/ms-playwright/mcp-chrome-1a2b/Cookies", ".cache/deno/deno_history.txt"];
    for (const name of caches) {
      mkdirSync(join(home, name, ".."), { recursive: true });
      writeFileSync(join(home, name), CANARY);
    }
    const { path } = await masks.layer({ home, project, mask: ["/usr/share/doc"], expose: [] });
    expect(through(path, `cd "$1${home}" && find .cache -type f`)).toBe(`${caches[0]}\n`);
    rmSync(join(home, ".cache"), { recursive: true });
  });

  test("the same request gives the same layer without looking at the machine again", async () => {
    const { home, project } = makeHome();
    const request = { home, project, mask: [], expose: [] };
    const layers = new Set([await masks.layer(request)]);
    const started = workMs();
    for (let round = 0; round < 20; round += 1) layers.add(await masks.layer(request));
    // One look costs tens of milliseconds. Other tests change the same machine meanwhile, which makes for a few looks.
    expect((workMs() - started) / 20).toBeLessThan(12);
    expect(layers.size).toBeLessThan(5);
  });
});
