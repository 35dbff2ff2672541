/** DMN-1: commits and lines in a log that come from an automation's own promotion are a loop; those of a person are none. */
import { execFileSync } from "node:child_process";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ACTING, AutomationLab } from "../support/automations.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const COMMIT = "git -c user.name=t -c user.email=t@example.com commit -q";
const PLUS = ["echo $(($(cat count.txt) + 1)) > count.txt"];
const ACTS = { run: PLUS, checks: ["test -s count.txt"], authority: "act-and-log" as const };
const LOOP = "A loop: its own promotion triggered it, so nothing was done.";

describe("an automation whose promotion runs a line", needs("root"), () => {
  let server: TestServer;
  let lab: AutomationLab;
  let log: string;
  const sh = (line: string): string => execFileSync("sh", ["-c", line], { cwd: server.project, encoding: "utf8" }).trim();

  beforeAll(async () => {
    server = await TestServer.start({ config: ACTING, files: { "count.txt": "0\n" } });
    lab = new AutomationLab(server);
    log = join(server.place, "service.log");
    writeFileSync(log, "");
    sh("git checkout -q -b main");
  });
  afterAll(async () => server?.remove());

  /** After each promotion into the folder, this line runs on the real machine. */
  async function afterwards(line: string): Promise<void> {
    const stages = [{ name: "dev", apply: "folder", after: [line] }];
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ stages }));
    await server.client.call("trust", { project: server.project });
    sh(`git add . && ${COMMIT} -m config`);
  }

  test("that commits is a loop where it waits for commits, also at a remote; a commit of a person begins anew", async () => {
    const remote = join(server.place, "remote.git");
    sh(`git init -q --bare ${remote}`);
    await afterwards(`${COMMIT} -a -m promoted && git push -q ${remote} main`);
    sh(`git push -q ${remote} main`);
    await lab.add("commits", { when: { on: "commit", branch: "main" }, ...ACTS });
    await lab.add("pushed", { when: { on: "commit", branch: "main", remote, every: "1s" }, run: ["true"], authority: "alert-only" });
    for (const automation of ["commits", "pushed"])
      await eventually(
        () => server.client.call("testAutomation", { automation }),
        ({ seen }) => /is at \w+\.$/.test(seen),
        20_000,
      );
    sh(`${COMMIT} --allow-empty -m person`);
    const [loop, first] = await lab.ended("commits", 2);
    expect([first?.state, loop?.state, loop?.reason]).toEqual(["promoted", "muted", LOOP]);
    expect(lab.read("count.txt")).toBe("1\n");
    // Another automation sees the commit at the remote, and that one is no loop for it.
    expect((await lab.ended("pushed", 1))[0]?.state).toBe("alerted");
    sh(`${COMMIT} --allow-empty -m again`);
    expect((await lab.ended("commits", 4)).map(({ state }) => state)).toEqual(["muted", "promoted", "muted", "promoted"]);
    expect(lab.read("count.txt")).toBe("2\n");
    expect((await lab.state("commits")).state).toBe("active");
    for (const automation of ["commits", "pushed"]) await server.client.call("removeAutomation", { automation });
  });

  test("that makes a service log an error is a loop where it waits for errors, and is muted after three in a row", async () => {
    await afterwards(`echo ERROR after the promotion >> ${log}`);
    const before = Number(lab.read("count.txt"));
    await lab.add("errors", { when: { on: "log", file: log, line: "*ERROR*" }, ...ACTS });
    appendFileSync(log, "ERROR first\n");
    const [loop, first] = await lab.ended("errors", 2);
    expect([first?.state, loop?.state, loop?.reason]).toEqual(["promoted", "muted", LOOP]);
    // The service goes on.
    for (const count of [3, 4]) {
      appendFileSync(log, `ERROR ${count}\n`);
      expect((await lab.ended("errors", count))[0]).toMatchObject({ state: "muted", reason: LOOP });
    }
    expect(lab.read("count.txt")).toBe(`${before + 1}\n`);
    expect(await lab.state("errors")).toMatchObject({ state: "muted", reason: "It triggered itself 3 times in a row." });
  });
});
