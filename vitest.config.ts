import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const shared = { testTimeout: 60_000, hookTimeout: 90_000 };

/** End-to-end tests that measure the machine, or load it on purpose. */
const ALONE = ["exhaustion", "floods", "noisy-sandbox", "quotas", "snapshot-cost"].map((name) => `test/e2e/${name}.test.ts`);

/** What takes longest begins first, so that none is at work alone in the end. */
const LONG = [
  "merge",
  "faults-host",
  "cli",
  "attack-files",
  "package",
  "attack-archives",
  "promotion-crash",
  "faults-snapshots",
  "crash",
  "experiments-judging",
  "faulty-cell",
  "egress-programs",
  "lifetime",
  "hostile-trees",
  "faults",
  "refresh",
  "experiments-life",
  "attack-promotion",
  "audit",
  "examples",
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
const together = { ...shared, maxWorkers: 3, sequence: { groupOrder: 0 } };

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
        test: { ...together, name: "e2e", include: ["test/e2e/**/*.test.ts"], exclude: ALONE },
      },
      {
        test: { ...shared, name: "alone", include: ALONE, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
