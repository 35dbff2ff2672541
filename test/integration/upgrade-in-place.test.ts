/** NET-4: an upgrade in place takes files away under a running server. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
let place: string;

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "viv-upgrade-"));
  cpSync(join(ROOT, "src"), join(place, "src"), { recursive: true });
  cpSync(join(ROOT, "package.json"), join(place, "package.json"));
  symlinkSync(join(ROOT, "node_modules"), join(place, "node_modules"));
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

/** Makes a certificate after the file that makes them is gone. */
function certificateAfterUpgrade(before: string): string {
  const file = "src/rules/secrets/certificates.ts";
  cpSync(join(ROOT, file), join(place, file));
  writeFileSync(
    join(place, "run.ts"),
    `import { rmSync } from "node:fs";
    import { SecretInterceptor } from "./src/rules/secrets/interceptor.ts";
    const interceptor = new SecretInterceptor({} as never, ${JSON.stringify(place)});
    ${before}
    rmSync(${JSON.stringify(join(place, file))});
    console.log((await interceptor.credentials("api.example.com")).cert);`,
  );
  const { stdout, stderr } = spawnSync(process.execPath, [join(place, "run.ts")], { cwd: place, encoding: "utf8", timeout: 30_000 });
  return `${stdout}${stderr}`;
}

test("NET-4: certificates are still made, since what makes them was loaded in the background", () => {
  expect(certificateAfterUpgrade("await interceptor.preload();")).toContain("BEGIN CERTIFICATE");
  // The control: what was not loaded is gone.
  expect(certificateAfterUpgrade("")).toContain("ERR_MODULE_NOT_FOUND");
});
