/** The port's reads and changes on a database that kysely has a dialect for. Opening it and its transactions are the dialect's own. */
import type { Kysely } from "kysely";
import type { VivEvent } from "../schema/event.ts";
import { LIMITS } from "../schema/limits.ts";
import { StoredAudit, StoredEvents, StoredRunEvents, StoredUsage } from "./logs.ts";
import type { WordIndex } from "./conversation-log.ts";
import type { Statements } from "./statements.ts";
import type { Change, Read } from "./store.ts";
import { collectionsIn } from "./stored-collection.ts";
import { StoredConversations } from "./stored-conversations.ts";
import type { Tables } from "./tables.ts";

export function readsOf(db: Kysely<Tables>, statements: Statements, words: WordIndex): Read {
  return {
    ...collectionsIn(db, statements),
    events: new StoredEvents(db, statements),
    audit: new StoredAudit(db, statements),
    usage: new StoredUsage(db),
    runEvents: new StoredRunEvents(db, statements),
    conversations: new StoredConversations(db, statements, words),
  };
}

/** What changes within the transactions of `db`. `onEvent` gets each event, to be published once its transaction is committed. */
export function changesOf(db: Kysely<Tables>, statements: Statements, words: WordIndex, onEvent: (event: VivEvent) => void): Change {
  const events = new StoredEvents(db, statements);
  return {
    ...collectionsIn(db, statements),
    events,
    audit: new StoredAudit(db, statements),
    usage: new StoredUsage(db),
    runEvents: new StoredRunEvents(db, statements),
    conversations: new StoredConversations(db, statements, words),
    event: async (type, sandbox, data = {}) => onEvent(await events.append(type, sandbox, data)),
  };
}

/** What `trim` does, within the transaction that `db` is in. */
export async function dropOld(db: Kysely<Tables>, statements: Statements): Promise<void> {
  const events = new StoredEvents(db, statements);
  await events.dropUpTo((await events.range()).newest - LIMITS.eventRetentionRows);
  await dropCommandsBeyond(db, LIMITS.keptCommands);
}

/** Of each sandbox with more commands than that, the oldest that have ended. */
async function dropCommandsBeyond(db: Kysely<Tables>, most: number): Promise<void> {
  const counted = db.selectFrom("commands").select("sandbox").groupBy("sandbox");
  for (const { sandbox } of await counted.having((one) => one.fn.countAll(), ">", most).execute()) {
    const ended = db.selectFrom("commands").select("started_at").where("sandbox", "=", sandbox).where("running", "=", 0);
    const last = await ended.orderBy("started_at", "desc").offset(most).limit(1).executeTakeFirst();
    if (last === undefined) continue;
    await db
      .deleteFrom("commands")
      .where("sandbox", "=", sandbox)
      .where("running", "=", 0)
      .where("started_at", "<=", last.started_at)
      .execute();
  }
}
