/** CLONE-4: what is masked or left out inside a project, however it is named, also in folders that are shared live. */
import { chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** An id that belongs to no account. */
const UID = 64_131;
const SHOWN = ["shown", "folder/shown", "shared/shown", "shared/deep/shown"];
const HIDDEN = [
  "by-the-user/file",
  "from-home/file",
  "..dots/file",
  "folder/linked/file",
  "slash/file",
  "shared/secret",
  "shared/deep/left/file",
  "over/shared/file",
];

describe.each([
  ["root", 0],
  ["an ordinary user", UID],
])("in a project, a sandbox of %s", needs("root", "user-namespaces", "open-checkout"), (_, uid) => {
  let home: string;
  let server: TestServer;
  let box: string;
  let before: string[];

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), "viv-hidden-"));
    chownSync(home, uid, uid);
    const config = {
      mask: ["..dots", "link/linked", "shared/secret", "over", "later", "shared/later"],
      capture: { exclude: ["slash/", "shared/deep/left"], live: ["shared", "over/shared", "slash"] },
    };
    server = await TestServer.start({
      uid,
      parent: home,
      env: { HOME: home },
      files: Object.fromEntries([...SHOWN, ...HIDDEN].map((name) => [name, "content"])),
    });
    for (const name of ["seen", "secret", "folder/secret"]) {
      mkdirSync(join(home, "data", name, ".."), { recursive: true });
      writeFileSync(join(home, "data", name), "content");
    }
    const services = { service: { command: "true", data: [join(home, "data")] } };
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ services }));
    await server.client.call("trust", { project: server.project });
    // A base from before anything was hidden.
    before = await seen((await server.create({ env: { HOME: home } })).id);
    await server.down();
    const name = server.project.slice(home.length + 1);
    writeFileSync(
      server.paths.config,
      JSON.stringify({ mask: [join(server.project, "by-the-user"), join(home, "data/secret"), join(home, "data/folder")] }),
    );
    const masked = { ...config, services, mask: [...config.mask, `~/${name}/from-home`] };
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify(masked));
    symlinkSync("folder", join(server.project, "link"));
    await server.up();
    await server.client.call("trust", { project: server.project });
    box = (await server.create({ env: { HOME: home } })).id;
  });
  afterAll(async () => {
    await server?.remove();
    rmSync(home, { recursive: true, force: true });
  });

  const seen = async (sandbox: string, folder = "."): Promise<string[]> => {
    const { stdout } = await server.sh(sandbox, `cd ${folder}; find . -name .git -prune -o -type f ! -name vivarium.json -print`);
    return stdout.trim().split("\n").toSorted();
  };

  test("CLONE-4: sees what is shown and nothing of what is hidden", async () => {
    const { capture } = await server.client.call("inspectSandbox", { sandbox: box });
    expect(capture.live.map(({ path }) => path)).toEqual([join(server.project, "shared")]);
    expect(before).toEqual([...SHOWN, ...HIDDEN].map((name) => `./${name}`).toSorted());
    expect(await seen(box)).toEqual(SHOWN.map((name) => `./${name}`).toSorted());
    expect(await seen(box, join(home, "data"))).toEqual(["./seen"]);
  });

  test("CLONE-4: sees nothing of it that appears while it runs, but what it writes there itself", async () => {
    mkdirSync(join(server.project, "shared/later"));
    for (const name of ["shared/later/file", "shared/new", "later"]) writeFileSync(join(server.project, name), "content");
    expect(await seen(box)).toEqual([...SHOWN, "shared/new"].map((name) => `./${name}`).toSorted());
    expect((await server.sh(box, "echo mine > shared/secret; cat shared/secret")).stdout).toBe("mine\n");
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box });
    expect((await server.sh(sandboxes[0]?.id ?? "", "cat shared/secret; ls shared")).stdout).toBe("mine\ndeep\nnew\nsecret\nshown\n");
  });
});
