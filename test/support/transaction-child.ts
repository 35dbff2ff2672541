/** Run by transaction.test.ts: applies a change and kills itself at the named point. */
import { readFileSync } from "node:fs";
import { CellHost } from "../../src/base/host/cell-host.ts";
import { type ApplyRequest, Transactions } from "../../src/work/promotion/transaction.ts";

interface Told extends Omit<ApplyRequest, "changes"> {
  readonly changes: readonly (Omit<ApplyRequest["changes"][number], "path"> & { readonly path: string })[];
  readonly state: string;
  readonly cell: string;
  readonly crashAt: string;
}

const told = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as Told;
const host = new CellHost({ program: told.cell });
const transactions = new Transactions(host, told.state, (point) => {
  if (point === told.crashAt) process.kill(process.pid, "SIGKILL");
});
await transactions.apply({ ...told, changes: told.changes.map((change) => ({ ...change, path: Buffer.from(change.path, "base64") })) });
await host.close();
