import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "vitest";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import { storeContract } from "../support/store-contract.ts";

describe("the store on SQLite (STO-1)", () => {
  storeContract(async () => {
    const folder = mkdtempSync(join(tmpdir(), "viv-store-"));
    return {
      open: () => openSqliteStore(join(folder, "vivarium.db")),
      remove: async () => rmSync(folder, { recursive: true }),
    };
  });
});
