import { defineConfig } from "vitest/config";

const shared = { testTimeout: 30_000, hookTimeout: 30_000 };

/** The groups run one after the other: what measures or loads the machine has it to itself. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: "unit",
          include: ["test/unit/**/*.test.ts", "test/tidy/**/*.test.ts", "src/**/*.test.ts"],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: "integration",
          include: ["test/integration/**/*.test.ts", "test/native/**/*.test.ts"],
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: { ...shared, name: "e2e", include: ["test/e2e/**/*.test.ts"], maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
