/** F-39 and the promise of promotion: after a kill -9 at any point the project is before or after, never between. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { rounds, SOAKING } from "../support/soak.ts";

const POINTS = ["staged", "journalled", "half", "applied", "synced", "committed", "cleaned"].map((point) => `promote.${point}`);
const FILES = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`src/${index % 7}/${index}.txt`, `${index}\n`]));
const CHANGE =
  "for f in src/*/*.txt; do echo changed >> $f; done; rm -r src/3 src/4/4.txt; mkdir -p new/x; for i in 1 2 3; do echo $i > new/x/$i; done; chmod +x src/1/1.txt; ln -s 2 new/x/l";
const KILLS = rounds(3, 100);

describe("a server killed while it promotes", needs("root"), () => {
  let server: TestServer;
  let sandbox: string;
  let before: string;
  let after: string;
  let promotionMs: number;

  /** Names, types, modes and contents of everything but the repository. */
  const fingerprint = (): string => {
    const list =
      "find . -path ./.git -prune -o -printf '%P %y %m %l\\n' | sort; find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 cat";
    return createHash("sha256")
      .update(execFileSync("sh", ["-c", list], { cwd: server.project }))
      .digest("hex");
  };
  const leftovers = (): string => execFileSync("sh", ["-c", "find . -name '*vivarium-*'"], { cwd: server.project, encoding: "utf8" });

  /** The project is one of both, the record says which, and nothing is pending. Returns whether the change is there. */
  async function expectSettled(): Promise<boolean> {
    const { promotions } = await server.client.call("listPromotions", { project: server.project });
    expect(promotions.filter(({ pending }) => pending)).toEqual([]);
    expect(leftovers()).toBe("");
    const now = fingerprint();
    expect([before, after]).toContain(now);
    const standing = promotions.filter(({ kind, state }) => kind === "promotion" && state === "applied").length;
    expect(standing).toBe(now === after ? 1 : 0);
    return now === after;
  }

  beforeAll(async () => {
    server = await TestServer.start({ config: { spares: false }, files: FILES });
    sandbox = (await server.create({ idleMs: 0 })).id;
    before = fingerprint();
    await server.sh(sandbox, CHANGE);
    const began = performance.now();
    expect(await server.client.call("promote", { sandbox })).toMatchObject({ state: "applied" });
    promotionMs = performance.now() - began;
    after = fingerprint();
    await server.client.call("undoPromotion", { project: server.project });
    expect(fingerprint()).toBe(before);
  });
  afterAll(async () => server?.remove());

  for (const point of ["promotion.begun", ...POINTS]) {
    test(`at ${point} leaves the project before or after, and says which`, async () => {
      await server.dieAt(point, () => server.client.call("promote", { sandbox }));
      const applied = await expectSettled();
      expect(applied).toBe(["promote.committed", "promote.cleaned"].includes(point));
      if (!applied) await server.client.call("promote", { sandbox });
      expect(fingerprint()).toBe(after);
      await server.dieAt(point === "promotion.begun" ? "promotion.undo" : point, () =>
        server.client.call("undoPromotion", { project: server.project }),
      );
      if (await expectSettled()) await server.client.call("undoPromotion", { project: server.project });
      expect(fingerprint()).toBe(before);
    });
  }

  test(`at ${KILLS} moments by chance leaves the project before or after`, { timeout: 60_000 + KILLS * 10_000 }, async () => {
    const ended = { before: 0, after: 0 };
    for (let round = 0; round < KILLS; round += 1) {
      const work = server.client.call("promote", { sandbox }).catch(() => undefined);
      await delay(Math.random() * promotionMs * 1.2);
      await server.kill();
      await work;
      await server.up();
      const applied = await expectSettled();
      ended[applied ? "after" : "before"] += 1;
      if (applied) await server.client.call("undoPromotion", { project: server.project });
      expect(fingerprint()).toBe(before);
    }
    if (!SOAKING) return;
    process.stdout.write(`${KILLS} kills: ${ended.before} ended before, ${ended.after} after\n`);
    expect(Math.min(ended.before, ended.after), "moments that never meet one of the ends prove little").toBeGreaterThan(0);
  });

  test("F-40: an edit made while it is down wins over bringing back what was written", async () => {
    await server.arm("promote.half");
    await expect(server.client.call("promote", { sandbox })).rejects.toThrow();
    await server.died();
    const file = "src/1/1.txt";
    appendFileSync(join(server.project, file), "mine\n");
    await server.up();
    const text = execFileSync("cat", [file], { cwd: server.project, encoding: "utf8" });
    expect(text).toContain("mine\n");
    const { promotions } = await eventually(
      () => server.client.call("listPromotions", { project: server.project }),
      (answer) => answer.promotions.every(({ pending }) => !pending),
    );
    expect(promotions[0]).toMatchObject({
      state: "failed",
      kept: [file],
      reason: expect.stringContaining(`${file} was edited meanwhile`) as string,
    });
    expect(promotions[0]?.reason).not.toContain("nothing stays");
    const { records } = await server.client.call("listAudit", { limit: 1000 });
    const end = records.findLast(({ action }) => action === "promotion.end");
    expect(end).toMatchObject({ arguments: { kept: [file] }, reason: promotions[0]?.reason });
  });
});
