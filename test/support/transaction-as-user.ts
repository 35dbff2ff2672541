/** Run as an ordinary user by transaction-owners.test.ts: applies a change, takes one back, and prints what it saw as JSON. */
import { everyKind, TransactionLab, words } from "./transactions.ts";

const lab = new TransactionLab();
const after = everyKind(lab);
const before = lab.seen();
lab.applyInChild("promote.applied");
const recovered = await lab.transactions.recover("t1");
const restored = [...before].every(([name, what]) => lab.seen().get(name) === what);
const { conflicts } = await lab.transactions.apply(lab.request("t2"));
const wrong = Object.entries(after).filter(([name, held]) => lab.holds(name) !== held);
const left = await lab.leftovers();
await lab.close();
process.stdout.write(JSON.stringify({ recovered, restored, conflicts: words(conflicts), wrong, left }));
