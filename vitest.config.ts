import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** A worker loads hundreds of modules, which fill the engine's small first heap again and again. */
const shared = { execArgv: ["--min-semi-space-size=16"], testTimeout: 60_000, hookTimeout: 90_000 };

/** End-to-end tests that measure the machine, or load it on purpose. */
const ALONE = ["floods", "noisy-sandbox", "snapshot-cost"].map((name) => `test/e2e/${name}.test.ts`);

/** What takes longest begins first, so that none is at work alone in the end. */
const LONG = [
  "runs",
  "automations-crash",
  "automations-judgement",
  "automations-triggers",
  "package",
  "git-start",
  "launches-ahead",
  "cli",
  "refresh",
  "faulty-cell",
  "crash",
  "faults-snapshots",
  "examples",
  "promotion-crash",
  "quotas",
  "experiments-life",
  "faults-host",
  "drivers",
  "merge",
  "audit",
  "attack-promotion",
  "exhaustion",
  "attack-files",
  "experiments-judging",
  "attack-archives",
  "hostile-trees",
  "setup",
  "refresh-elsewhere",
  "services-take",
  "sync",
  "services-postgres",
  "promotion-sequences",
  "lifetime",
  "machine-layouts",
  "full-disk",
  "experiments",
  "egress",
  "secret-import",
  "faults",
  "attack-network",
  "jobs-crash",
  "gateway",
  "diff",
  "interrupted-starts",
  "attack-secrets",
  "models",
  "push",
  "egress-programs",
  "busy-endings",
  "promotion-rules",
  "empty-workspace",
  "approvals-terminal",
  "ordinary-user",
  "actions-crash",
  "sandbox",
  "mcp",
  "jobs",
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
        // Kills, broken disks and helpers, full machines, attacks: `npm run test:pressure`.
        test: { ...together, name: "pressure", include: ["test/pressure/**/*.test.ts"], isolate: false, sequence: { groupOrder: 7 } },
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
        // Work that agents, chats, jobs and automations hand in, without a model: `npm run test:runs`.
        test: { ...together, name: "runs", include: ["test/runs/**/*.test.ts"], isolate: false, sequence: { groupOrder: 5 } },
      },
      {
        // The package as npm installs it, and large programs of others inside: `npm run test:programs`.
        test: {
          ...together,
          testTimeout: 120_000,
          name: "programs",
          include: ["test/programs/**/*.test.ts"],
          isolate: false,
          sequence: { groupOrder: 6 },
        },
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
