/** Runs by chance, in which all goes wrong that can: what the guardian promises holds all the same. */
import { describe, expect, test } from "vitest";
import { GuardianLab } from "../support/guardian-lab.ts";
import { Randomness } from "../support/randomness.ts";

const HOUR = 3_600_000;
const CHANGING = ["rollback", "restart", "stop"];

type Happening = (lab: GuardianLab, random: Randomness) => Promise<void>;

const HAPPENINGS: readonly Happening[] = [
  async (lab) => lab.loop(3),
  async (lab) => lab.loop(6),
  async (lab) => lab.loop(6),
  async (lab, random) => lab.step(`cat ${random.below(1000)}`, `code ${random.next()}`, true),
  async (lab, random) => lab.see({ clone: `state ${random.below(40)}` }),
  async (lab, random) => lab.pass(random.below(10 * 60_000)),
  async (lab) => lab.pass(3 * 60_000),
  async (lab) => lab.see({ modelRequests: 0 }),
  async (lab) => lab.see({ paused: false }),
  async (lab, random) => lab.see({ use: { disk: random.next(), memory: random.next() } }),
  async (lab, random) => lab.see({ files: { added: 0, deleted: random.below(100), project: 200 } }),
  async (lab) => lab.event({ type: "message", from: "person", text: "Try another way.", message: null }),
  async (lab, random) => lab.guardian.answer(random.of(["stuck", "damage damage", "nothing"]), "go_on"),
  async (lab, random) => void lab.refused.add(random.of(["message", "rollback", "restart", "snapshot", "pause"])),
  async (lab) => lab.refused.clear(),
  async (lab) => lab.die(),
];

/** No agent gets any further, and some die. */
const HOPELESS: readonly Happening[] = [
  ...Array.from({ length: 24 }, (): Happening => async (lab, random) => {
    await lab.loop(6);
    await lab.pass(random.below(90_000));
  }),
  async (lab) => lab.die(),
];

async function runByChance(seed: number, happenings: readonly Happening[]): Promise<GuardianLab> {
  const random = new Randomness(seed);
  const lab = new GuardianLab();
  for (let i = 0; i < 150 && !lab.done.includes("stop"); i += 1) {
    await random.of(happenings)(lab, random);
    await lab.guardian.settled();
  }
  return lab;
}

describe("the guardian, whatever happens", () => {
  const labs = Promise.all(Array.from({ length: 60 }, (_, seed) => runByChance(seed, HAPPENINGS)));
  const hopeless = Promise.all(Array.from({ length: 40 }, (_, seed) => runByChance(seed, HOPELESS)));

  test("steps in often enough for this to mean something", async () => {
    const steps = new Set((await labs).flatMap((lab) => lab.steps));
    expect([...steps].sort()).toEqual(["ask", "message", "pause", "restart", "rollback", "stop"]);
  });

  test("GRD-2: takes no work away and ends nothing without a snapshot right before", async () => {
    for (const { done } of await labs) {
      const bare = done.filter((what, index) => CHANGING.includes(what) && done[index - 1] !== "snapshot");
      expect(bare).toEqual([]);
    }
  });

  test("GRD-2: asks a person before it pauses, takes away or ends anything", async () => {
    for (const { steps } of await labs) {
      const [asked, firm] = [steps.indexOf("ask"), steps.findIndex((step) => ["pause", ...CHANGING].includes(step))];
      expect(firm === -1 || (asked !== -1 && asked < firm)).toBe(true);
    }
  });

  test("GRD-3: restarts at most three times an hour, a minute after the last one at the earliest, and then stops", async () => {
    let restarts = 0;
    for (const lab of [...(await labs), ...(await hopeless)]) {
      const own = lab.records.filter(({ event }) => event.step === "restart").map(({ at }) => at);
      restarts += own.length;
      const wrong = own.filter((at) => {
        const before = lab.restarts.filter((other) => other < at && at - other < HOUR);
        return before.length >= 3 || before.some((other) => at - other < 60_000);
      });
      expect(wrong).toEqual([]);
    }
    expect(restarts).toBeGreaterThan(20);
    for (const lab of await hopeless) expect(lab.done.at(-1)).toBe("stop");
  });

  test("says nothing about one agent to another", async () => {
    for (const { records, targets } of await labs) {
      for (const { audit } of records) expect(audit.arguments).toHaveProperty("incarnation");
      expect(targets.every(({ incarnation }, index) => incarnation >= (targets[index - 1]?.incarnation ?? 0))).toBe(true);
    }
  });

  test("keeps a state that is small, plain JSON", async () => {
    for (const { guardian } of await labs) {
      const text = JSON.stringify(guardian.state);
      expect(JSON.parse(text)).toEqual(guardian.state);
      expect(text.length).toBeLessThan(20_000);
    }
  });
});
