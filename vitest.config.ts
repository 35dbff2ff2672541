import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const shared = { testTimeout: 60_000, hookTimeout: 90_000 };

/** End-to-end tests that measure the machine, or load it on purpose. */
const ALONE = ["floods", "noisy-sandbox", "snapshot-cost"].map((name) => `test/e2e/${name}.test.ts`);

/** What takes longest begins first, so that none is at work alone in the end. */
const LONG = [
  "faulty-cell",
  "cli",
  "drivers",
  "exhaustion",
  "git-start",
  "egress-programs",
  "crash",
  "runs",
  "audit",
  "faults-host",
  "diff",
  "busy-endings",
  "package",
  "refresh",
  "lifetime",
  "attack-network",
  "merge",
  "experiments-life",
  "experiments-judging",
  "examples",
  "attack-promotion",
  "keep-commits",
  "push",
  "hostile-trees",
  "sync",
  "faults-snapshots",
  "setup",
  "services-postgres",
  "quotas",
  "promotion-crash",
  "notifications",
  "ordinary-user",
  "branch",
  "gateway",
  "approvals-terminal",
  "attack-archives",
  "folder-volumes",
  "refresh-elsewhere",
  "experiments",
  "policy-shells",
  "services-take",
  "machine-layouts",
  "full-disk",
  "automations-triggers",
  "automations",
];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONG.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return at === -1 ? LONG.length : at;
    };
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}

/** Much of their time is waiting: for servers that start, end, and are killed. */
const together = { ...shared, maxWorkers: 5, sequence: { groupOrder: 0 } };

/** The groups run one after the other: what measures or loads the machine has it to itself. */
export default defineConfig({
  test: {
    globalSetup: "test/support/bundled.ts",
    sequence: { sequencer: LongFirst },
    projects: [
      {
        test: {
          ...together,
          name: "unit",
          include: ["test/unit/**/*.test.ts", "test/tidy/**/*.test.ts", "src/**/*.test.ts"],
          // A process of its own for each file would take a third of their time; they leave nothing behind that another file meets.
          isolate: false,
        },
      },
      {
        test: {
          ...together,
          name: "integration",
          include: ["test/integration/**/*.test.ts", "test/native/**/*.test.ts"],
          // As for unit tests: a test that changes its process puts that back.
          isolate: false,
        },
      },
      {
        // As for unit tests.
        test: { ...together, name: "e2e", include: ["test/e2e/**/*.test.ts"], exclude: ALONE, isolate: false },
      },
      {
        test: { ...shared, name: "alone", include: ALONE, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
      {
        // Programs of hundreds of megabytes, of which each takes a core: `npm run test:agents`.
        test: {
          ...shared,
          testTimeout: 180_000,
          name: "agents",
          include: ["test/agents/**/*.test.ts"],
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // Runs of agents without a model, chats with them, and automations: `npm run test:runs`. With them, npm test would take ten minutes.
        test: { ...together, name: "runs", include: ["test/runs/**/*.test.ts"], isolate: false, sequence: { groupOrder: 5 } },
      },
      {
        // Jupyter, which is large: `npm run test:notebook`.
        test: { ...shared, name: "notebook", include: ["test/notebook/**/*.test.ts"], sequence: { groupOrder: 4 } },
      },
      {
        // A real browser takes a core and hundreds of megabytes: `npm run test:browser`.
        test: {
          ...shared,
          testTimeout: 120_000,
          name: "browser",
          include: ["test/browser/**/*.test.ts"],
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
