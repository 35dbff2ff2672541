import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "../support/skip.ts";

const VIV = fileURLToPath(new URL("../../bin/viv", import.meta.url));
const NOBODY_IN_PARTICULAR = 64_221;

/** A machine that allows no walls: an ordinary user in a namespace in which no further one may be made. */
const WITHOUT_WALLS = 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "$@"';

describe("where no walls can be had", needs("root", "user-namespaces", "open-checkout"), () => {
  const place = mkdtempSync(join(tmpdir(), "viv-test-"));
  const project = join(place, "project");

  beforeAll(() => {
    mkdirSync(project);
    writeFileSync(join(project, "file"), "real\n");
    execFileSync("git", ["init", "-q", project]);
    chmodSync(place, 0o755);
    execFileSync("chown", ["-R", `${NOBODY_IN_PARTICULAR}`, place]);
    chownSync(place, NOBODY_IN_PARTICULAR, NOBODY_IN_PARTICULAR);
  });

  afterAll(() => rmSync(place, { recursive: true, force: true }));

  function viv(...args: string[]): { code: number | null; stdout: string; stderr: string } {
    const id = String(NOBODY_IN_PARTICULAR);
    const unwalled = [
      "--reuid",
      id,
      "--regid",
      id,
      "--clear-groups",
      "unshare",
      "--user",
      "--map-root-user",
      "sh",
      "-c",
      WITHOUT_WALLS,
      "sh",
    ];
    const env = {
      PATH: `${dirname(process.execPath)}:/usr/sbin:/usr/bin:/sbin:/bin`,
      HOME: place,
      VIV_HOME: join(place, "state"),
      XDG_CACHE_HOME: join(place, "cache"),
    };
    const { status, stdout, stderr } = spawnSync("setpriv", [...unwalled, process.execPath, VIV, ...args], {
      cwd: project,
      env,
      encoding: "utf8",
    });
    return { code: status, stdout, stderr };
  }

  test("DRV-4: a sandbox is refused by default, and a marked copy is given to who asks for it", () => {
    const refused = viv("create");
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("--unwalled")]);

    const created = viv("create", "--unwalled", "--name", "copy", "--json");
    expect(JSON.parse(created.stdout)).toMatchObject({
      name: "copy",
      state: "running",
      walled: false,
      driver: "folder",
      limitsHeld: "none",
    });
    expect(created.stderr).toContain("UNWALLED");
    expect(viv("ls").stdout).toContain("UNWALLED");
    expect(viv("inspect", "copy").stdout).toContain("UNWALLED");

    expect(viv("exec", "copy", "--", "sh", "-c", "cat file; echo changed > file").stdout).toBe("real\n");
    expect(readFileSync(join(project, "file"), "utf8")).toBe("real\n");
    expect(viv("diff", "copy").stdout).toContain("file");

    const limited = viv("create", "--unwalled", "--memory", "1g");
    expect([limited.code, limited.stderr]).toEqual([2, expect.stringContaining("can't be held")]);
    const doctor = viv("doctor");
    expect([doctor.code, doctor.stdout]).toEqual([1, expect.stringContaining("offers no walls")]);
    expect(viv("rm", "copy").code).toBe(0);
    expect(viv("down").code).toBe(0);
  });
});
