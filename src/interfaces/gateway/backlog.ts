/** Tasks that an agent leaves for later: a row of the backlog, and a file in `.tasks/` of its clone that gets into the diff. */
import { projectInside } from "../../base/schema/workspace.ts";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Audit } from "../../rules/audit/audit.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { BacklogTask } from "../../base/schema/backlog.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Answer, Call } from "./call.ts";

/** Tasks that a list shows. */
const MOST_SHOWN = 200;

export class Backlog {
  readonly #parts: Pick<Parts, "store" | "live">;
  readonly #audit: Audit;

  constructor(parts: Pick<Parts, "store" | "live">, audit: Audit) {
    this.#parts = parts;
    this.#audit = audit;
  }

  async create({ row, input }: Call<"createTask">): Answer<"createTask"> {
    const { store, live } = this.#parts;
    if ((await store.backlog.count({ sandbox: row.id })) >= LIMITS.maxBacklogTasks)
      throw new VivError("no_capacity", `This sandbox has left ${LIMITS.maxBacklogTasks} tasks, which is the most.`, {
        remedy: "Do some of them first.",
      });
    const task: BacklogTask = {
      id: newId("task"),
      project: row.project,
      sandbox: row.id,
      sandboxName: row.name,
      ...input,
      createdAt: new Date().toISOString(),
    };
    await this.#audit.record({
      actor: { kind: "agent", name: row.name },
      action: "create_task",
      target: task.title,
      arguments: { task: task.id, priority: task.priority },
      label: "AUTONOMOUS",
      rule: null,
      reason: null,
      sandbox: row.id,
      snapshot: row.currentSnapshot,
    });
    const file = join(projectInside(row), ".tasks", `${task.id}.md`);
    await live.require(row).walls.files.write(file, row.user, Readable.from([Buffer.from(pageOf(task))]), { mode: 0o644, parents: true });
    await store.change(async (change) => {
      await change.backlog.put(task);
      await change.event("backlog.added", row.id, { id: task.id, title: task.title, priority: task.priority });
    });
    return { body: { created: true, taskId: task.id } };
  }

  async list({ row }: Call<"listTasks">): Answer<"listTasks"> {
    return { body: { tasks: await this.#parts.store.backlog.list({ project: row.project }, { limit: MOST_SHOWN }) } };
  }
}

function pageOf({ title, description, priority, sandboxName, createdAt }: BacklogTask): string {
  return `# ${title}\n\n${description === "" ? "" : `${description}\n\n`}Priority: ${priority}. Left by ${sandboxName}, ${createdAt}.\n`;
}
