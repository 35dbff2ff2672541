/** Begins a migration and is killed in the middle of it. */
import { MIGRATIONS } from "../../src/base/store/migrations.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";

await openSqliteStore(process.argv[2] ?? "", [
  ...MIGRATIONS,
  async (db) => {
    await db.schema.alterTable("projects").addColumn("note", "text").execute();
    process.kill(process.pid, "SIGKILL");
  },
]);
