/** Firings: what triggers saw becomes one, waits for its turn, is triaged, and works. What an earlier server left goes on. */
import { errorText } from "../../base/host/log.ts";
import { effectivePolicy } from "../../base/policy/policy.ts";
import type { FiringTriage } from "../../base/schema/automation.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { AutomationRow, FiringRow } from "../../base/store/rows.ts";
import type { Change } from "../../base/store/store.ts";
import { openProject } from "../../sandbox/projects/projects.ts";
import { within } from "./authority.ts";
import { budgetOf, reservedBy, Spending } from "./budgets.ts";
import { Alarm } from "./clock.ts";
import { Decisions } from "./decisions.ts";
import { ExperimentEnds } from "./experiment-ends.ts";
import { advanced, newFiring, putFiring, withSighting, type Sighting } from "./firing-record.ts";
import { FiringRun } from "./firing-run.ts";
import { triageFiring } from "./firing-triage.ts";
import { nightOf } from "./hours.ts";
import { tell } from "./notice.ts";
import type { AutomationParts } from "./parts.ts";
import { hindranceOf, type Hindrance, type Surroundings } from "./turns.ts";

type Cursor = AutomationRow["cursor"];

export const REMOVED = "The automation was removed; what was done so far is kept.";

/** Brings the automations of a project in line with its config, as that is now. */
type Renew = (project: string) => Promise<void>;

export class Firings {
  readonly #all: AutomationParts;
  readonly #renew: Renew;
  readonly #ends: ExperimentEnds;
  readonly #decisions: Decisions;
  readonly #spending: Spending;
  readonly #alarm: Alarm;
  /** Those that have not begun, by id. */
  readonly #waiting = new Map<string, FiringRow>();
  readonly #runs = new Map<string, { readonly run: FiringRun; readonly automation: AutomationRow }>();
  readonly #works = new Set<Promise<void>>();
  /** Those that have their turn, and are not at work yet. */
  readonly #triaging = new Set<string>();
  #sequence = 0;
  #isClosed = false;
  #dispatching: Promise<void> | undefined;
  #again = false;

  constructor(all: AutomationParts, renew: Renew) {
    this.#all = all;
    this.#renew = renew;
    this.#ends = new ExperimentEnds(all.parts.store, all.experiments);
    this.#decisions = new Decisions(all.parts.store, all.clock, all.parts.log);
    this.#spending = new Spending(all.parts.store);
    this.#alarm = new Alarm(all.clock, () => this.dispatch());
  }

  /** After a start of the server. */
  async resume(): Promise<void> {
    const { store } = this.#all.parts;
    this.#sequence = (await store.firings.list({}, { limit: 1 }))[0]?.sequence ?? 0;
    for (const row of (await store.firings.list({ open: true })).toReversed()) {
      const automation = await store.automations.get(row.automation);
      if (row.state === "seen") this.#waiting.set(row.id, row);
      else if (row.state === "waiting") continue;
      else if (automation !== undefined) this.#begin(automation, row, true);
      else await this.#begin(withoutAutomation(row), row, true).stop(REMOVED);
    }
    await this.#decisions.resume();
    this.dispatch();
  }

  /**
   * What a trigger saw, with what it is to remember, in one change: either all of it is kept, or nothing. Resolves with the firing
   * that stands for it; undefined where it was seen before, or the automation does not wait.
   */
  async take(id: string, sightings: readonly Sighting[], cursor?: Cursor, asked = false): Promise<FiringRow | undefined> {
    const { store, reach } = this.#all.parts;
    const row = await store.change(async (change) => {
      const automation = await change.automations.get(id);
      if (automation === undefined) return undefined;
      if (cursor !== undefined) await change.automations.put({ ...automation, cursor });
      return asked || automation.state === "active" ? this.#merge(change, automation, sightings, asked) : undefined;
    });
    if (row === undefined) return undefined;
    if (!this.#triaging.has(row.id) && !this.#runs.has(row.id)) this.#waiting.set(row.id, row);
    reach("firing.seen");
    this.dispatch();
    return row;
  }

  async #merge(change: Change, automation: AutomationRow, sightings: readonly Sighting[], asked: boolean): Promise<FiringRow | undefined> {
    const now = this.#now;
    const fresh: Sighting[] = [];
    const keys = new Set<string>();
    for (const sighting of sightings) {
      const key = sighting.key === null ? null : sightingId(automation.id, sighting.key);
      if (key !== null && (keys.has(key) || (await change.sightings.get(key)) !== undefined)) continue;
      if (key !== null) keys.add(key);
      fresh.push(sighting);
    }
    if (fresh.length === 0) return undefined;
    const open = [...this.#waiting.values()].find((row) => row.automation === automation.id && row.asked !== true && !asked);
    const there = open === undefined ? undefined : await change.firings.get(open.id);
    const isNew = there?.state !== "seen";
    const start = isNew ? this.#fresh(automation, asked) : there;
    const row = fresh.reduce((merged, sighting) => withSighting(merged, sighting, now), start);
    if (isNew) await putFiring(change, row);
    else await change.firings.put(row);
    for (const key of keys) await change.sightings.put({ id: key, automation: automation.id, firing: row.id, at: now.toISOString() });
    return row;
  }

  #fresh(automation: AutomationRow, asked: boolean): FiringRow {
    const batch = asked ? 0 : (automation.spec.batch ?? LIMITS.defaultBatchMs);
    const row = newFiring(automation, (this.#sequence += 1), this.#now, batch);
    return asked ? { ...row, asked: true } : row;
  }

  /** Gives turns to those that may begin. */
  dispatch(): void {
    if (this.#isClosed) return;
    this.#again = true;
    this.#dispatching ??= this.#dispatchAll()
      .catch((error: unknown) => this.#all.parts.log.warn("firings were not given their turn", { error: errorText(error) }))
      .finally(() => {
        this.#dispatching = undefined;
        if (this.#again) this.dispatch();
      });
  }

  async #dispatchAll(): Promise<void> {
    while (this.#again && !this.#isClosed) {
      this.#again = false;
      let next: number | null = null;
      const renewed = new Set<string>();
      for (const row of [...this.#waiting.values()].toSorted((one, other) => one.sequence - other.sequence)) {
        const until = await this.#turn(row, renewed);
        if (until !== null) next = Math.min(next ?? until, until);
      }
      this.#alarm.set(next);
    }
  }

  /** Begins it, or the time at which to look again. `renewed` holds the projects whose configs were read for this look. */
  async #turn(row: FiringRow, renewed: Set<string>): Promise<number | null> {
    const { store } = this.#all.parts;
    const known = await store.automations.get(row.automation);
    // What was removed from the config since, or is not what a person trusted, does not begin.
    const isOfConfig = known?.source === "config";
    if (isOfConfig && !renewed.has(known.project)) await this.#renew(known.project);
    if (isOfConfig) renewed.add(known.project);
    const automation = isOfConfig ? await store.automations.get(row.automation) : known;
    if (automation === undefined) return this.#drop(row, REMOVED);
    const hindrance = ofState(automation, row) ?? (await this.hindrance(automation, row));
    if (hindrance !== null) {
      await this.#note(row, hindrance);
      return hindrance.until?.getTime() ?? null;
    }
    this.#waiting.delete(row.id);
    this.#triaging.add(row.id);
    await this.#triage(automation, row).finally(() => this.#triaging.delete(row.id));
    return null;
  }

  async #drop(row: FiringRow, reason: string): Promise<null> {
    await this.#put(row, (now) => advanced(now, "failed", reason, this.#now));
    this.#waiting.delete(row.id);
    return null;
  }

  /** Why it waits is shown; what more may come to it is not worth a record. */
  async #note(row: FiringRow, { reason, until }: Hindrance): Promise<void> {
    if (row.reason === reason || until?.toISOString() === row.notBefore) return;
    const noted = await this.#put(row, (now) => ({ ...now, reason }), false);
    if (this.#waiting.has(row.id)) this.#waiting.set(row.id, noted);
  }

  async #put(row: FiringRow, work: (now: FiringRow) => FiringRow, tells = true): Promise<FiringRow> {
    return this.#all.parts.store.change(async (change) => {
      const next = work((await change.firings.get(row.id)) ?? row);
      if (tells) await putFiring(change, next);
      else await change.firings.put(next);
      return next;
    });
  }

  async hindrance(automation: AutomationRow, row: Pick<FiringRow, "notBefore" | "asked">): Promise<Hindrance | null> {
    return hindranceOf(automation, row, await this.#surroundings(automation));
  }

  async #surroundings({ id, spec }: AutomationRow): Promise<Surroundings> {
    const { user } = this.#all.parts;
    const now = this.#now;
    const running = [...this.#runs.values()].map(({ automation }) => ({
      automation: automation.id,
      project: automation.project,
      name: automation.name,
      together: automation.spec.together,
    }));
    const isBudgeted = spec.budget.night !== undefined || user.automations.budget !== undefined;
    const began = nightOf(now, spec.quiet?.timezone).began;
    const atWork = [...this.#runs.values()].map(({ run }) => run.row);
    return {
      now,
      config: user.automations,
      running,
      spent: isBudgeted ? await this.#spending.since(began, id) : { own: 0, all: 0 },
      reserved: reservedBy(atWork, id),
    };
  }

  /** Says what is to be done; a loop is muted instead. */
  async #triage(automation: AutomationRow, row: FiringRow): Promise<void> {
    const { parts, audit } = this.#all;
    if (row.causes?.includes(automation.id) === true && row.asked !== true) return this.#muteLoop(automation, row);
    const authority = within(automation.spec.authority, parts.user.automations.authority);
    let triage: FiringTriage;
    try {
      triage = await this.triageOf(automation);
    } catch (error) {
      await this.#put(row, (now) => advanced(now, "failed", errorText(error), this.#now));
      return;
    }
    await audit.noteFirst({
      actor: { kind: "server", name: `automation ${automation.name}` },
      action: "automation.triage",
      target: automation.project,
      arguments: { firing: row.id, way: triage.way, authority, seen: row.seen[0]?.text ?? "" },
      label: "AUTONOMOUS",
      rule: authority,
      reason: triage.reason,
      sandbox: null,
      snapshot: null,
    });
    const { spent, reserved } = await this.#surroundings(automation);
    const budget = budgetOf(automation.spec, parts.user.automations, spent, reserved);
    const triaged = await parts.store.change(async (change) => {
      const now = (await change.firings.get(row.id)) ?? row;
      const next = advanced(now, "triaged", triage.reason, this.#now, { triage, authority, budget });
      await putFiring(change, next);
      const kept = await change.automations.get(automation.id);
      if (kept !== undefined && kept.selfCaused > 0) await change.automations.put({ ...kept, selfCaused: 0 });
      return next;
    });
    parts.reach("firing.triaged");
    this.#begin(automation, triaged, false);
  }

  async triageOf(automation: AutomationRow): Promise<FiringTriage> {
    const { store, state, user } = this.#all.parts;
    const { config, row } = await openProject(store, automation.project, state);
    const { spec } = automation;
    const authority = within(spec.authority, user.automations.authority);
    const policy = effectivePolicy({ config, project: row.path });
    return triageFiring({ spec, authority, policy, checks: spec.checks ?? config.checks });
  }

  async #muteLoop(automation: AutomationRow, row: FiringRow): Promise<void> {
    // What came before its own promotion is how the round began, and no part of it.
    const { causes = [] } = row;
    const others = [...new Set(causes.slice(causes.indexOf(automation.id)).filter((id) => id !== automation.id))];
    const rows = await Promise.all(others.map((id) => this.#all.parts.store.automations.get(id)));
    const around = others.length === 0 ? "" : ` by way of ${rows.map((other, at) => other?.name ?? others[at]).join(", ")}`;
    const reason = `A loop: its own promotion triggered it${around}, so nothing was done.`;
    await this.#all.parts.store.change(async (change) => {
      await putFiring(change, advanced((await change.firings.get(row.id)) ?? row, "muted", reason, this.#now));
      const kept = await change.automations.get(automation.id);
      if (kept === undefined) return;
      const selfCaused = kept.selfCaused + 1;
      await change.automations.put({ ...kept, selfCaused });
      if (selfCaused < LIMITS.selfCausedFirings) return;
      const text = `It triggered itself ${selfCaused} times in a row.`;
      await this.mute(change, automation.id, text);
      const { id, name, project } = automation;
      await tell(change, { kind: "alert", title: `Automation ${name} is muted`, text, link: `/automation/${id}`, project });
    });
  }

  /** Stops an automation from firing again until a person resumes it. The caller tells the person. */
  readonly mute = async (change: Change, id: string, reason: string): Promise<void> => {
    const row = await change.automations.get(id);
    if (row === undefined) return;
    await change.automations.put({ ...row, state: "muted", reason });
    await change.event("automation.changed", null, { automation: id, name: row.name, project: row.project, state: "muted", reason });
  };

  #begin(automation: AutomationRow, row: FiringRow, isTakenOver: boolean): FiringRun {
    const run = new FiringRun({ ...this.#all, ends: this.#ends, mute: this.mute }, automation, row, isTakenOver);
    this.#runs.set(row.id, { run, automation });
    const work = run
      .work()
      .catch((error: unknown) =>
        this.#all.parts.log.warn("a firing was left to the next server", { firing: row.id, error: errorText(error) }),
      )
      .then(() => this.#over(run))
      .finally(() => this.#works.delete(work));
    this.#works.add(work);
    return run;
  }

  #over({ row }: FiringRun): void {
    this.#runs.delete(row.id);
    this.#spending.note(row);
    this.#decisions.over(row);
    this.dispatch();
  }

  /** Ends what is at work for an automation; what was done is kept. */
  async stop(automation: string, why: string): Promise<void> {
    const runs = [...this.#runs.values()].filter((each) => each.automation.id === automation);
    await Promise.all(runs.map(({ run }) => run.stop(why)));
    this.dispatch();
  }

  /** What is at work goes on, for the next server. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#alarm.close();
    this.#decisions.close();
    for (const { run } of this.#runs.values()) run.close();
    await this.#dispatching;
    await Promise.all(this.#works);
    this.#ends.close();
  }

  get #now(): Date {
    return new Date(this.#all.clock.now());
  }
}

/** What was seen before an automation was paused, or stopped itself, is not lost: it waits until a person resumes it. */
function ofState({ state, reason }: AutomationRow, { asked }: FiringRow): Hindrance | null {
  if (state === "broken") return { reason: `The automation is broken: ${reason ?? ""}`, until: null };
  if (state === "active" || asked === true) return null;
  return { reason: `The automation is ${state}: this begins when it is resumed.`, until: null };
}

function sightingId(automation: string, key: string): string {
  return `${automation}:${key}`;
}

/** For a firing whose automation was removed while it was at work, and no server was there to end it. */
function withoutAutomation(row: FiringRow): AutomationRow {
  return {
    id: row.automation,
    name: row.name,
    project: row.project,
    source: "person",
    kind: row.kind,
    spec: { run: ["true"], reality: [], authority: "alert-only", budget: {}, together: true, dryRun: false },
    state: "paused",
    reason: null,
    createdAt: row.seenAt,
    cursor: {},
    selfCaused: 0,
  };
}
