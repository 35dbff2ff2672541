/** Which automations there are: those that people added, and those of trusted configs. */
import { errorText } from "../../base/host/log.ts";
import type { AutomationSpec } from "../../base/schema/automation.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { AutomationRow } from "../../base/store/rows.ts";
import { openProject } from "../../sandbox/projects/projects.ts";
import type { AutomationParts } from "./parts.ts";

const UNTRUSTED = "vivarium.json, or a file that it runs, is not what was trusted: look at it, then run `viv trust`.";

export function newAutomation(
  given: Pick<AutomationRow, "name" | "project" | "source" | "spec"> & Partial<Pick<AutomationRow, "path">>,
  now: Date,
): AutomationRow {
  return {
    id: newId("automation"),
    ...given,
    kind: given.spec.when?.on ?? "manual",
    state: "active",
    reason: null,
    createdAt: now.toISOString(),
    cursor: {},
    selfCaused: 0,
  };
}

export class Definitions {
  readonly #all: AutomationParts;
  readonly #prepared: (row: AutomationRow) => AutomationRow;

  /** `prepared` adds what a trigger needs to a new row. */
  constructor(all: AutomationParts, prepared: (row: AutomationRow) => AutomationRow) {
    this.#all = all;
    this.#prepared = prepared;
  }

  /** Brings the rows of a project, or of all known ones, in line with their configs. What goes from a config is given to `gone`. */
  async sync(gone: (row: AutomationRow) => Promise<void>, project?: string): Promise<void> {
    const { store, log } = this.#all.parts;
    const paths = project === undefined ? (await store.projects.list()).map(({ path }) => path) : [project];
    for (const path of paths) {
      try {
        await this.#syncProject(path, gone);
      } catch (error) {
        log.info("the automations of a project could not be read", { project: path, error: errorText(error) });
      }
    }
  }

  async #syncProject(path: string, gone: (row: AutomationRow) => Promise<void>): Promise<void> {
    const { store, state } = this.#all.parts;
    const rows = await store.automations.list({ project: path });
    const mine = rows.filter(({ source }) => source === "config");
    const view = await openProject(store, path, state).catch((error: unknown) => {
      // A project that is gone has no config, and its automations rest; one whose config is broken keeps them until it is mended.
      if (mine.length === 0) return undefined;
      throw error;
    });
    if (view === undefined || view.row.path !== path) return;
    if (!view.trusted && view.untrusted.includes("automations")) {
      for (const row of mine) await this.#put({ ...row, state: "broken", reason: UNTRUSTED }, row);
      return;
    }
    const wanted = new Map(Object.entries(view.config.automations));
    for (const row of mine) {
      const spec = wanted.get(row.name);
      if (spec === undefined) await gone(row);
      else await this.#put(renewed(row, spec), row);
    }
    const names = new Set(rows.map(({ name }) => name));
    for (const [name, spec] of wanted)
      if (!names.has(name)) await this.add(newAutomation({ name, project: path, source: "config", spec }, this.#now));
  }

  async add(made: AutomationRow): Promise<AutomationRow> {
    const row = this.#prepared(made);
    return this.#all.parts.store.change(async (change) => {
      if (await change.automations.has({ project: row.project, name: row.name }))
        throw new VivError("exists", `The project has an automation ${row.name} already.`, {
          remedy: "Choose another name, or remove that one with `viv automation rm`.",
        });
      if ((await change.automations.count()) >= LIMITS.maxAutomations)
        throw new VivError("no_capacity", `There are ${LIMITS.maxAutomations} automations, and no more are taken.`, {
          remedy: "Remove some with `viv automation rm`.",
        });
      await change.automations.put(row);
      await change.event("automation.changed", null, { automation: row.id, name: row.name, project: row.project, state: row.state });
      return row;
    });
  }

  /** Writes what differs. */
  async #put(next: AutomationRow, before: AutomationRow): Promise<void> {
    if (JSON.stringify(next) !== JSON.stringify(before)) await this.change(before.id, () => next);
  }

  /** Changes a row as it is now; with an event. */
  async change(id: string, work: (row: AutomationRow) => AutomationRow): Promise<AutomationRow> {
    return this.#all.parts.store.change(async (change) => {
      const row = await change.automations.get(id);
      if (row === undefined) throw new VivError("not_found", `There is no automation ${id}.`, { remedy: "Look at `viv automation ls`." });
      const next = work(row);
      await change.automations.put(next);
      const { name, project, state, reason } = next;
      await change.event("automation.changed", null, { automation: id, name, project, state, reason });
      return next;
    });
  }

  /** By its id, or by its name: in a project first, then wherever there is one of that name alone. */
  async find(reference: string, project: string | undefined): Promise<AutomationRow> {
    const { store, state } = this.#all.parts;
    const row = await store.automations.get(reference);
    if (row !== undefined) return row;
    const named = await store.automations.list({ name: reference });
    const path =
      project === undefined
        ? undefined
        : await openProject(store, project, state).then(
            ({ row: { path: at } }) => at,
            () => undefined,
          );
    const [own] = named.filter((each) => each.project === path);
    const [only, second] = named;
    if (own !== undefined) return own;
    if (only === undefined)
      throw new VivError("not_found", `There is no automation ${JSON.stringify(reference)}.`, { remedy: "Look at `viv automation ls`." });
    if (second === undefined) return only;
    throw new VivError("invalid_input", `${named.length} projects have an automation ${reference}.`, {
      remedy: "Name it by its id, or call from its project.",
    });
  }

  get #now(): Date {
    return new Date(this.#all.clock.now());
  }
}

/** A row with the config's content of now. What a person paused stays paused; what was muted is tried again once it is another. */
function renewed(row: AutomationRow, spec: AutomationSpec): AutomationRow {
  const isSame = JSON.stringify(spec) === JSON.stringify(row.spec);
  if (isSame) return row.reason === UNTRUSTED ? { ...row, state: "active", reason: null } : row;
  const kind = spec.when?.on ?? "manual";
  const isPaused = row.state === "paused";
  return { ...row, spec, kind, cursor: {}, selfCaused: 0, state: isPaused ? "paused" : "active", reason: isPaused ? row.reason : null };
}
