/** The face of this room: automations wait for their triggers; what people ask of them. */
import { errorText } from "../../base/host/log.ts";
import type { Automation, AutomationSpec, AutomationTest, Firing, MorningReport } from "../../base/schema/automation.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { VivEvent } from "../../base/schema/event.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { AutomationRow } from "../../base/store/rows.ts";
import { openProject } from "../../sandbox/projects/projects.ts";
import { within } from "./authority.ts";
import { Definitions, newAutomation } from "./definitions.ts";
import { idIn } from "./experiment-ends.ts";
import { shownFiring } from "./firing-record.ts";
import { Firings, REMOVED } from "./firings.ts";
import { morningReport } from "./report.ts";
import { Sources, type SourceParts } from "./triggers/sources.ts";
import type { HookCall } from "./triggers/webhook.ts";

const SHOWN_FIRINGS = 10;

export class Automations {
  readonly #all: SourceParts;
  readonly #definitions: Definitions;
  readonly #firings: Firings;
  readonly #sources: Sources;
  readonly #leave: () => void;
  #syncing: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(all: SourceParts) {
    this.#all = all;
    this.#definitions = new Definitions(all, (row) => this.#sources.sealed(row));
    this.#firings = new Firings(all, (project) => this.#sync(project));
    this.#sources = new Sources(all, (id, sightings, cursor) => this.#firings.take(id, sightings, cursor));
    this.#leave = all.parts.store.onEvents((events) => this.#hear(events));
  }

  /** After a start of the server: what was under way goes on, and triggers are waited for again. */
  async resume(): Promise<void> {
    await this.#firings.resume();
    await this.#sync();
  }

  #hear(events: readonly VivEvent[]): void {
    if (events.some(({ type }) => type === "project.trusted")) void this.#sync();
    const changed = events.filter(({ type }) => type === "automation.changed");
    for (const { data } of changed) void this.#arm(idIn(data["automation"]));
    if (changed.length > 0) this.#firings.dispatch();
  }

  /** Reads the config of a project, or of all, and waits for the triggers that they have now. */
  async #sync(project?: string): Promise<void> {
    this.#syncing = this.#syncing
      .then(async () => {
        if (this.#isClosed) return;
        await this.#definitions.sync((row) => this.#gone(row), project);
        for (const { id } of await this.#all.parts.store.automations.list({ project })) await this.#arm(id);
      })
      .catch((error: unknown) => this.#all.parts.log.warn("automations could not be read", { error: errorText(error) }));
    await this.#syncing;
  }

  /** Waits for a trigger, or ends waiting, as the row says. */
  async #arm(id: string): Promise<void> {
    if (this.#isClosed) return;
    try {
      await this.#sources.arm(id);
    } catch (error) {
      await this.#definitions
        .change(id, (row) => (row.state === "active" ? { ...row, state: "broken", reason: errorText(error) } : row))
        .catch((failure: unknown) => this.#all.parts.log.warn("an automation is broken", { automation: id, error: errorText(failure) }));
    }
  }

  async add(input: {
    project: string;
    name: string;
    spec: AutomationSpec;
    path?: string | undefined;
  }): Promise<Automation & { secret: string | null }> {
    const { store, state, user } = this.#all.parts;
    const { row: project } = await openProject(store, input.project, state);
    const most = user.automations.authority;
    if (within(input.spec.authority, most) !== input.spec.authority)
      throw new VivError("denied", `Automations of this machine may ${most} at most, and this one is to ${input.spec.authority}.`, {
        remedy: "Raise `automations.authority` in your own config, or give it less authority.",
      });
    const { path } = input;
    const made = newAutomation(
      { name: input.name, project: project.path, source: "person", spec: input.spec, ...(path === undefined ? {} : { path }) },
      new Date(this.#all.clock.now()),
    );
    this.#sources.check(made);
    const row = await this.#definitions.add(made);
    await this.#arm(row.id);
    return { ...(await this.#shown(await this.#definitions.find(row.id, undefined))), secret: this.#sources.secretOf(row) };
  }

  async list(project: string | undefined): Promise<Automation[]> {
    await this.#sync();
    const { store } = this.#all.parts;
    const rows = await store.automations.list({ project });
    const sorted = rows.toSorted((one, other) => (one.project < other.project ? -1 : one.project > other.project ? 1 : 0));
    return Promise.all(sorted.map((row) => this.#shown(row)));
  }

  async inspect(reference: string, project: string | undefined): Promise<Automation & { firings: Firing[] }> {
    await this.#sync();
    const row = await this.#definitions.find(reference, project);
    const firings = await this.#all.parts.store.firings.list({ automation: row.id }, { limit: SHOWN_FIRINGS });
    return { ...(await this.#shown(row)), firings: firings.map(shownFiring) };
  }

  /** What calls of its webhook are signed with. */
  async secret(reference: string, project: string | undefined, renew: boolean): Promise<{ secret: string }> {
    const found = await this.#definitions.find(reference, project);
    if (found.kind !== "webhook")
      throw new VivError("invalid_input", `The automation ${found.name} waits for ${found.kind}, and has no webhook.`, {
        remedy: "Look at `viv automation show`.",
      });
    const row = renew ? await this.#definitions.change(found.id, (now) => this.#sources.sealed(now)) : found;
    const secret = this.#sources.secretOf(row);
    if (secret === null) throw new VivError("not_found", "The webhook has no secret.", { remedy: "Call with `--renew`." });
    return { secret };
  }

  /** A call of a webhook; the firing that it is part of. */
  async hook(id: string, call: HookCall): Promise<string> {
    return this.#sources.call(id, call);
  }

  /** A person starts it: also one that is paused or muted. */
  async run(reference: string, project: string | undefined): Promise<Firing> {
    await this.#sync();
    const row = await this.#definitions.find(reference, project);
    if (row.state === "broken")
      throw new VivError("illegal_transition", `The automation ${row.name} is broken: ${row.reason ?? ""}`, {
        remedy: "Mend what the reason names.",
      });
    const firing = await this.#firings.take(row.id, [{ key: null, text: "A person started it." }], undefined, true);
    if (firing === undefined)
      throw new VivError("not_found", `There is no automation ${reference}.`, { remedy: "Look at `viv automation ls`." });
    return shownFiring(firing);
  }

  /** What its trigger would do now; nothing is done. */
  async test(reference: string, project: string | undefined): Promise<AutomationTest> {
    await this.#sync();
    const row = await this.#definitions.find(reference, project);
    const triage = await this.#firings.triageOf(row);
    const { wouldFire, seen } = await this.#sources.look(row);
    const hindrance = await this.#firings.hindrance(row, { notBefore: null });
    const state = row.state === "active" ? null : `It is ${row.state}${row.reason === null ? "." : `: ${row.reason}`}`;
    return { automation: await this.#shown(row), triage, wouldFire, seen, hindrance: state ?? hindrance?.reason ?? null };
  }

  /** What is at work goes on; what has not begun waits until it is resumed. */
  async pause(reference: string, project: string | undefined, reason: string | undefined): Promise<Automation> {
    const { id } = await this.#definitions.find(reference, project);
    return this.#shown(await this.#definitions.change(id, (row) => ({ ...row, state: "paused", reason: reason ?? "A person paused it." })));
  }

  /** Also one that stopped itself. What was seen before begins now, as one firing; what happened meanwhile is no reason to fire. */
  async resumeOne(reference: string, project: string | undefined): Promise<Automation> {
    const { id } = await this.#definitions.find(reference, project);
    const row = await this.#definitions.change(id, (now) => ({ ...now, state: "active", reason: null, selfCaused: 0, cursor: {} }));
    await this.#sync();
    return this.#shown((await this.#all.parts.store.automations.get(id)) ?? row);
  }

  async remove(reference: string, project: string | undefined): Promise<void> {
    const row = await this.#definitions.find(reference, project);
    if (row.source === "config")
      throw new VivError("illegal_transition", `The automation ${row.name} is one of vivarium.json.`, {
        remedy: "Remove it there, or pause it with `viv automation pause`.",
      });
    await this.#gone(row);
  }

  async #gone({ id, name, project }: AutomationRow): Promise<void> {
    await this.#sources.disarm(id);
    await this.#all.parts.store.change(async (change) => {
      await change.automations.remove(id);
      await change.event("automation.changed", null, { automation: id, name, project, state: "removed" });
    });
    this.#all.parts.reach("automation.removed");
    await this.#firings.stop(id, REMOVED);
  }

  async history(filter: { automation?: string | undefined; project?: string | undefined; limit: number }): Promise<Firing[]> {
    const { store } = this.#all.parts;
    const { automation: reference, project, limit } = filter;
    if (reference === undefined) return (await store.firings.list({ project }, { limit })).map(shownFiring);
    const { id } = await this.#definitions.find(reference, project);
    return (await store.firings.list({ automation: id }, { limit })).map(shownFiring);
  }

  async firing(id: string): Promise<Firing> {
    const row = await this.#all.parts.store.firings.get(id);
    if (row !== undefined) return shownFiring(row);
    throw new VivError("not_found", `There is no firing ${id}.`, { remedy: "Look at `viv automation history`." });
  }

  async report(since: Date, project: string | undefined): Promise<MorningReport> {
    const { store } = this.#all.parts;
    const rows = await store.firings.list({ project });
    const automations = await Promise.all((await store.automations.list({ project })).map((row) => this.#shown(row)));
    return morningReport(rows, automations, since, new Date(this.#all.clock.now()));
  }

  /** Forgets firings that ended long ago. */
  async sweep(): Promise<void> {
    const { store } = this.#all.parts;
    const counts = new Map<string, number>();
    const old = (await store.firings.list()).filter(({ automation, endedAt }) => {
      const count = (counts.get(automation) ?? 0) + 1;
      counts.set(automation, count);
      return count > LIMITS.keptFirings && endedAt !== null;
    });
    await store.change(async (change) => {
      for (const { id } of old) await change.firings.remove(id);
    });
  }

  async #shown(row: AutomationRow): Promise<Automation> {
    const { path: _, sealed: __, cursor: ___, selfCaused: ____, ...shown } = row;
    const authority = within(row.spec.authority, this.#all.parts.user.automations.authority);
    const [newest] = await this.#all.parts.store.firings.list({ automation: row.id }, { limit: 1 });
    const last = newest === undefined ? null : { firing: newest.id, state: newest.state, at: newest.seenAt };
    return { ...shown, reason: row.reason ?? this.#sources.troubleOf(row.id), authority, nextAt: this.#sources.nextAt(row.id), last };
  }

  /** Triggers are waited for no more; what is at work goes on, for the next server. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#leave();
    await this.#syncing;
    await this.#sources.close();
    await this.#firings.close();
  }
}
