/** Machines of other shapes: folders that are links, a root as containers have it, a state folder on an overlay. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** An id that belongs to nobody. */
const UID = 64_129;

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
      "disk/people/me/notes": "canary",
      "disk/people/me/.nvm/tool": "tool",
      "home/stray": "canary",
      "lib/other/file": "beside",
    };
    lay(place, files, uid);
    chmodSync(place, 0o755);
    symlinkSync("disk", join(place, "data"));
    symlinkSync("/srv/data/people/me", join(place, "home/me"));
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
    for (const path of ["secret/file", "database/rows", "people/me/notes"])
      expect(await inside(`cat /srv/disk/${path} /srv/data/${path}`)).not.toContain("canary");
    expect(await inside("cat /home/stray /home/me/notes /var/lib/postgresql/rows")).not.toContain("canary");
  });

  test("CLONE-1: has the toolchains of a home that is a link, at both of its names", async () => {
    expect(await inside("cat /home/me/.nvm/tool /srv/disk/people/me/.nvm/tool")).toBe("tooltool");
    expect(await inside("echo mine > /home/me/new; cat /srv/disk/people/me/new")).toBe("mine");
  });
});
