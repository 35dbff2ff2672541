/** `viv code` and `viv jobs`, as a user types them. */
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Job, JobDetail } from "../../src/base/schema/job.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { startViv, viv, type Answer } from "../support/viv.ts";

describe("viv code", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    // Sandboxes see it: the state folder holds the Node that runs TypeScript.
    server = await TestServer.start({ parent: "/var/lib", before: ({ place }) => chmodSync(place, 0o755) });
  });

  afterAll(async () => server?.remove());

  const code = (name: string, text: string, ...options: readonly string[]): Answer => {
    const file = join(server.place, name);
    writeFileSync(file, text);
    return viv(server, ["code", ...options, file]);
  };

  test("BOX-3: runs a file by its ending, shows both streams, and ends with the code's exit code", () => {
    expect(code("a.sh", "pwd; echo wrong >&2; exit 7")).toMatchObject({ code: 7, out: "/workspace\n", err: "wrong\n" });
  });

  test("takes the language from the first line or from --lang, and code from stdin", () => {
    expect(code("script", "#!/usr/bin/env bash\necho by the first line")).toMatchObject({ code: 0, out: "by the first line\n" });
    expect(viv(server, ["code", "--lang", "sh"], { input: "echo from stdin" })).toMatchObject({ code: 0, out: "from stdin\n" });
    expect(viv(server, ["code", "--lang", "sh", "-"], { input: "echo dash" })).toMatchObject({ code: 0, out: "dash\n" });
    expect(code("unknown", "echo")).toMatchObject({ code: 2, err: expect.stringContaining("--lang python|ts|sh") });
    expect(code("b.sh", "echo", "--lang", "cobol")).toMatchObject({ code: 2, err: expect.stringContaining("cobol") });
  });

  test("BOX-3: runs TypeScript by its ending, and by --lang", () => {
    const typed = "const numbers: readonly number[] = [1, 2];\nconsole.log(numbers.length, process.cwd());";
    expect(code("a.ts", typed)).toMatchObject({ code: 0, out: "2 /workspace\n", err: "" });
    expect(viv(server, ["code", "--lang", "ts"], { input: typed })).toMatchObject({ code: 0, out: "2 /workspace\n" });
  });

  test("BOX-3: runs Python by its ending, and by --lang whatever the ending says", needs("python3"), () => {
    const python = "import os, sys\nprint(os.getcwd())\nsys.exit(3)";
    expect(code("a.py", python)).toMatchObject({ code: 3, out: "/workspace\n", err: "" });
    expect(code("b.txt", python, "--lang", "python")).toMatchObject({ code: 3, out: "/workspace\n" });
    expect(viv(server, ["code", "--lang", "python", "-"], { input: "print(7 * 6)" })).toMatchObject({ code: 0, out: "42\n" });
  });

  test("passes bytes on as they are", () => {
    expect([...code("bytes.sh", "printf '\\377\\000\\200'").bytes]).toEqual([0xff, 0, 0x80]);
  });

  test("says the time limit, and refuses code that is too long before it sends it", () => {
    expect(code("slow.sh", "sleep 600", "--timeout", "300ms")).toMatchObject({ code: 124, err: expect.stringContaining("time limit") });
    const long = code("long.sh", "#".repeat(LIMITS.jobCodeBytes + 1));
    expect(long).toMatchObject({ code: 5, err: expect.stringContaining("512 KiB") });
    expect(viv(server, ["code", "/nowhere.py"])).toMatchObject({ code: 2, err: expect.stringContaining("/nowhere.py") });
  });

  test("--project runs in a clone of it, --keep keeps the sandbox, --json is one value", () => {
    const kept = code("c.sh", "cat hello.txt; echo x > made", "--project", server.project, "--keep");
    expect(kept).toMatchObject({ code: 0, out: "hello\n" });
    const [, name = ""] = /kept as (\S+)\./.exec(kept.err) ?? [];
    expect(viv(server, ["exec", name, "--", "cat", "made"]).out).toBe("x\n");
    expect(viv(server, ["rm", name]).code).toBe(0);
    const told = JSON.parse(code("d.sh", "echo out; exit 3", "--json").out) as JobDetail;
    expect(told).toMatchObject({ state: "failed", exitCode: 3, stdout: "out\n", code: "echo out; exit 3" });
  });

  test("ctrl-C ends the job, and the exit code is 130", async () => {
    const file = join(server.place, "long.sh");
    writeFileSync(file, "echo on; sleep 600");
    const child = startViv(server, ["code", file]);
    await once(child.stdout, "data");
    child.kill("SIGINT");
    const [exit] = (await once(child, "close")) as [number];
    expect(exit).toBe(130);
    const { jobs } = await server.client.call("listJobs", { limit: 1 });
    expect(jobs[0]).toMatchObject({ state: "failed", cause: "cancelled" });
  });

  test("viv jobs lists them, show and cancel take the beginning of an id", () => {
    const { out } = viv(server, ["code", "--lang", "sh", "--detach"], { input: "echo on; sleep 600" });
    const id = out.trim();
    const listed = viv(server, ["jobs"]).out;
    expect(listed).toContain(id.slice(0, 8));
    expect(listed).toMatch(/failed \(timeout\)/);
    const { jobs } = JSON.parse(viv(server, ["jobs", "--json", "--limit", "2"]).out) as { jobs: Job[] };
    expect(jobs).toHaveLength(2);
    expect(jobs[0]?.id).toBe(id);
    const cancelled = viv(server, ["jobs", "cancel", id.slice(0, 8)]);
    expect(cancelled.out).toBe(`${id}: failed (cancelled)\n`);
    const shown = viv(server, ["jobs", "show", id.slice(0, 8)]).out;
    expect(shown).toContain("echo on; sleep 600");
    expect(shown).toContain("viv: The job was cancelled.");
    expect(viv(server, ["jobs", "show", "zzzz"])).toMatchObject({ code: 2, err: expect.stringContaining("no job") });
  });
});
