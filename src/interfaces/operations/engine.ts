/** The use cases, bound to the parts that carry them out. */
import { resolve } from "node:path";
import type { Actions } from "../../rules/actions/actions.ts";
import { alwaysIn } from "../../rules/actions/policy-of.ts";
import type { Approvals } from "../../rules/approvals/approvals.ts";
import type { Audit } from "../../rules/audit/audit.ts";
import type { Mover } from "../../base/host/mover.ts";
import type { EventFeed } from "../../base/events/events.ts";
import { pack, unpack } from "../../sandbox/files/archive.ts";
import { diffInFull, diffSorted, makePatch, makePromotablePatch } from "../../machine/merge/diff.ts";
import { diffSystem } from "../../machine/merge/system.ts";
import { sidesOf, systemOf } from "../../sandbox/changes/diff.ts";
import { sortingOf } from "../../sandbox/changes/promotable-of.ts";
import type { FileOperations } from "../../machine/drivers/drivers.ts";
import type { LiveSandbox } from "../../sandbox/shared/live.ts";
import type { Previews } from "../../rules/sessions/previews.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Promotions } from "../../work/promotion/promotions.ts";
import type { Recovery } from "../../sandbox/recovery.ts";
import type { Models } from "../../rules/models/models.ts";
import type { Secrets } from "../../rules/secrets/secrets.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import { openProject } from "../../sandbox/projects/projects.ts";
import { sandboxStatus, staleness } from "../../sandbox/changes/status.ts";
import { isFinal, notRunning, requireLive } from "../../sandbox/shared/state.ts";
import { OWNER } from "../../base/schema/audit.ts";
import type { ParsedOf } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { VivEvent } from "../../base/schema/event.ts";
import { projectInside } from "../../base/schema/workspace.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Conversations } from "../../work/conversations/conversations.ts";
import type { Experiments } from "../../work/experiments/experiments.ts";
import type { Agents } from "../../work/agents/agents.ts";
import type { Runs } from "../../work/agents/runs.ts";
import type { Automations } from "../../work/automation/automations.ts";
import type { Jobs } from "../../work/jobs/jobs.ts";
import type { Notifications } from "../../work/notifications/notifications.ts";
import type { PushBrowsers } from "../../work/notifications/push/browsers.ts";
import type { SandboxRefresh } from "../../work/refresh/refresh.ts";
import { actionHandlers } from "./actions.ts";
import { agentHandlers, agentsFinding } from "./agents.ts";
import { approvalHandlers } from "./approvals.ts";
import { auditHandlers } from "./audit.ts";
import { notebookHandlers, notebookStreams } from "./notebooks.ts";
import { desktopHandlers, desktopStreams } from "./desktops.ts";
import { previewHandlers } from "./previews.ts";
import { commandHandlers } from "./commands.ts";
import { conversationHandlers } from "./conversations.ts";
import { dashboardHandlers, type DashboardDoor } from "./dashboard.ts";
import { effectHandlers } from "./effects.ts";
import { experimentHandlers } from "./experiments.ts";
import { networkHandlers } from "./network.ts";
import { modelHandlers } from "./models.ts";
import { notificationHandlers } from "./notifications.ts";
import { jobHandlers } from "./jobs.ts";
import { automationHandlers } from "./automations.ts";
import { backlogHandlers } from "./backlog.ts";
import { runHandlers } from "./runs.ts";
import { subjectId } from "./subjects.ts";
import { policyHandlers } from "./policy.ts";
import { portStreams } from "./ports.ts";
import { secretHandlers } from "./secrets.ts";
import { promotionHandlers } from "./promotions.ts";
import type { MachineHistory } from "./machine-history.ts";
import type { ServerView } from "./server-status.ts";
import { OperationAudit } from "./operation-audit.ts";
import type { Engine, EventOptions, Handlers, Streams, Use } from "./operations.ts";

export interface EngineParts {
  readonly parts: Parts;
  readonly sandboxes: Sandboxes;
  readonly recovery: Recovery;
  readonly audit: Audit;
  readonly approvals: Approvals;
  readonly actions: Actions;
  readonly secrets: Secrets;
  readonly models: Models;
  readonly experiments: Experiments;
  readonly conversations: Conversations;
  readonly refresh: SandboxRefresh;
  /** Absent where there is no cell. */
  readonly promotions: Promotions | undefined;
  readonly agents: Agents;
  readonly runs: Runs;
  readonly jobs: Jobs;
  readonly notifications: Notifications;
  readonly pushBrowsers: PushBrowsers;
  readonly automations: Automations;
  readonly events: EventFeed;
  readonly view: ServerView;
  readonly history: MachineHistory;
  readonly door: DashboardDoor;
  readonly previews: Previews;
  readonly mover: Mover;
  /** Begins the end of the server. */
  readonly shutdown: () => void;
  /** Folder for spooled uploads. */
  readonly temporary: string;
}

const OK = { ok: true } as const;

export function createEngine(engine: EngineParts): Engine {
  const inside = new Inside(engine);
  const operationAudit = new OperationAudit(engine.audit, (reference) => engine.sandboxes.find(reference));
  return operationAudit.engine({ operations: handlers(engine, inside), streams: streams(engine, inside) });
}

/** Finds a sandbox's files and resolves paths and users as its caller means them. */
class Inside {
  readonly #engine: EngineParts;
  constructor(engine: EngineParts) {
    this.#engine = engine;
  }

  async files(
    reference: string,
    path: string,
    user?: string,
  ): Promise<{ files: FileOperations; path: string; user: string; row: SandboxRow; live: LiveSandbox }> {
    if (user?.includes("\0") === true) throw new VivError("invalid_input", "The user has a NUL byte.");
    const row = await this.#engine.sandboxes.find(reference);
    requireLive(row);
    const live = this.#engine.parts.live.require(row);
    live.activeAt = performance.now();
    const files = this.#engine.sandboxes.damage.watch(row.id, live.walls.files);
    return { files, path: resolve(projectInside(row), path), user: user ?? row.user, row, live };
  }
}

function handlers(engine: EngineParts, inside: Inside): Handlers {
  const { sandboxes, parts } = engine;
  return {
    createSandbox: (input, signal) => sandboxes.create(input, signal),
    listSandboxes: async (filter) => ({ sandboxes: await sandboxes.list(filter) }),
    findSandbox: ({ sandbox }) => sandboxes.summary(sandbox),
    inspectSandbox: ({ sandbox }) => sandboxes.inspect(sandbox),
    removeSandbox: async ({ sandbox }) => (await sandboxes.remove(sandbox), OK),
    stopSandbox: ({ sandbox }) => sandboxes.stop(sandbox, { outcome: "done", reason: null }),
    startSandbox: ({ sandbox }) => sandboxes.start(sandbox),
    pauseSandbox: ({ sandbox }) => sandboxes.pause(sandbox),
    resumeSandbox: ({ sandbox }) => sandboxes.resume(sandbox),
    extendSandbox: ({ sandbox, by, idle }) => sandboxes.extend(sandbox, by, idle),
    limitSandbox: ({ sandbox, ...change }) => sandboxes.limit(sandbox, change),
    forkSandbox: async ({ sandbox, snapshot, count, names, ...autonomy }) => ({
      sandboxes: await sandboxes.fork(sandbox, snapshot, count, names ?? [], autonomy),
    }),
    diffSandbox: async ({ sandbox, stat, promotable }) => {
      const row = await sandboxes.find(sandbox);
      const backend = parts.backends.of(row);
      const workplace = { gather: backend.gather, tool: backend.tool, temporary: engine.temporary };
      const sorting = sortingOf(parts, row, await sidesOf(backend, row));
      const diff = await (stat ? diffInFull : diffSorted)(workplace, sorting);
      return promotable ? { ...diff, entries: diff.entries.filter(({ leftOut }) => leftOut === null) } : diff;
    },
    diffSystem: async ({ sandbox }) => {
      const row = await sandboxes.find(sandbox);
      const backend = parts.backends.of(row);
      const workplace = { gather: backend.gather, tool: backend.tool, temporary: engine.temporary };
      return diffSystem(workplace, backend.takeOut, systemOf(backend, row));
    },
    sandboxStatus: async ({ sandbox }) => sandboxStatus(parts, await sandboxes.find(sandbox), engine.temporary),
    refreshSandbox: ({ sandbox }) => engine.refresh.refresh(sandbox),
    staleness: async ({ sandbox }) => staleness(parts, await sandboxes.find(sandbox)),

    createSnapshot: ({ sandbox, name }) => sandboxes.snapshot(sandbox, name),
    listSnapshots: async ({ sandbox }) => ({ snapshots: await sandboxes.snapshots.list(await sandboxes.find(sandbox)) }),
    removeSnapshot: async ({ sandbox, snapshot }) => (await sandboxes.removeSnapshot(sandbox, snapshot), OK),
    rollback: async ({ sandbox, snapshot }) =>
      (await engine.runs.rollBack(sandbox, snapshot)) ? sandboxes.summary(sandbox) : sandboxes.rollback(sandbox, snapshot),

    listFiles: async ({ sandbox, path, depth, limit, user }) => {
      const at = await inside.files(sandbox, path, user);
      return { entries: await at.files.list(at.path, at.user, depth, limit) };
    },
    statFile: async ({ sandbox, path, user }) => {
      const at = await inside.files(sandbox, path, user);
      return at.files.stat(at.path, at.user);
    },
    moveFile: async ({ sandbox, path, to, replace, user }) => {
      const at = await inside.files(sandbox, path, user);
      await at.files.move(at.path, resolve(projectInside(at.row), to), at.user, replace);
      return OK;
    },
    removeFile: async ({ sandbox, path, recursive, user }) => {
      const at = await inside.files(sandbox, path, user);
      await at.files.remove(at.path, at.user, recursive);
      return OK;
    },
    makeFolder: async ({ sandbox, path, parents, user }) => {
      const at = await inside.files(sandbox, path, user);
      await at.files.mkdir(at.path, at.user, parents);
      return OK;
    },

    ...commandHandlers(parts, sandboxes),
    ...desktopHandlers(sandboxes),
    ...notebookHandlers(sandboxes),
    ...previewHandlers(engine),
    ...jobHandlers(engine.jobs),
    ...automationHandlers(engine.automations),
    ...experimentHandlers(engine.experiments),
    ...agentHandlers(engine.agents),
    ...runHandlers(engine.runs),
    ...backlogHandlers(parts.store),
    ...conversationHandlers(engine.conversations),
    ...approvalHandlers(engine.approvals, engine.promotions),
    ...actionHandlers(engine),
    ...auditHandlers(engine.audit, sandboxes),
    ...networkHandlers(engine),
    ...policyHandlers({
      open: (path) => openProject(parts.store, path, parts.state),
      ofSandbox: async (sandbox) => engine.actions.policy(await sandboxes.find(sandbox)),
      always: (project) => alwaysIn(engine.approvals, project),
    }),
    ...effectHandlers(parts.store, sandboxes),
    ...dashboardHandlers(engine.door),
    ...notificationHandlers(engine.notifications, engine.pushBrowsers),
    ...secretHandlers(engine.secrets, engine.parts.state, () => sandboxes.creation.spares.clear()),
    ...modelHandlers(parts.store, sandboxes, engine.models),
    ...promotionHandlers(() => required(engine.promotions), engine.approvals),

    listEvents: async ({ after, limit, sandbox }) => {
      const id = sandbox === undefined ? undefined : await subjectId(engine.sandboxes, sandbox);
      return {
        events: await parts.store.events.list({ after, limit, ...(id === undefined ? {} : { sandbox: id }) }),
        ...(await parts.store.events.range()),
      };
    },

    machineHistory: async () => ({ samples: engine.history.samples() }),
    status: () => engine.view.status(),
    doctor: async (caller) => {
      const report = await engine.view.doctor();
      return { ...report, findings: [...report.findings, agentsFinding(engine.agents.list(caller))] };
    },
    trust: (input) => trust(engine, input),
    prune: ({ all }) => prune(engine, all),
    shutdown: async () => (engine.shutdown(), OK),
  };
}

function required(promotions: Promotions | undefined): Promotions {
  if (promotions === undefined) throw new VivError("unsupported", "Nothing can be promoted on a machine without the cell.");
  return promotions;
}

async function trust(engine: EngineParts, { project, hash, dryRun }: ParsedOf<"trust">): ReturnType<Handlers["trust"]> {
  const view = await openProject(engine.parts.store, project, engine.parts.state);
  const answer = { project: view.row.path, file: view.file, widens: view.widens, runs: [...view.runs.files], hash: view.hash };
  if (hash !== undefined && hash !== view.hash)
    throw new VivError(
      "untrusted_config",
      `The config of ${view.row.path}, or a file that it runs, has changed since it was shown; nothing was trusted.`,
    );
  if (dryRun || view.trusted) return { ...answer, trusted: view.trusted };
  const widens = view.widens.map(({ key }) => key);
  await engine.audit.record({
    actor: OWNER,
    action: "project.trust",
    target: view.row.path,
    arguments: { hash: view.hash, widens, runs: [...view.runs.files] },
    label: "RECORDED",
    rule: null,
    reason: null,
    sandbox: null,
    snapshot: null,
  });
  await engine.parts.store.change(async (change) => {
    await change.projects.put({ ...view.row, trusted: view.hash });
    await change.event("project.trusted", null, { project: view.row.path, hash: view.hash, widens });
  });
  return { ...answer, trusted: true };
}

async function prune(engine: EngineParts, all: boolean): ReturnType<Handlers["prune"]> {
  const { parts, sandboxes } = engine;
  const rows = (await parts.store.sandboxes.list()).filter((row) => !row.removing && (all || isFinal(row.state)));
  const before = await parts.store.snapshots.count();
  for (const row of rows) {
    await sandboxes.remove(row.id).catch((error: unknown) => {
      // Another caller was quicker.
      if (!(error instanceof VivError) || error.code !== "not_found") throw error;
    });
  }
  await sandboxes.creation.spares.clear();
  const bases = await parts.store.bases.count();
  const leftovers = await engine.recovery.reconcile("asked");
  return {
    sandboxes: rows.length,
    snapshots: before - (await parts.store.snapshots.count()),
    bases: bases - (await parts.store.bases.count()),
    leftovers,
  };
}

function streams(engine: EngineParts, inside: Inside): Streams {
  const { sandboxes, parts, events } = engine;
  return {
    exec: async (sandbox, { terminal, stdin, onDisconnect, ...spec }) => {
      const row = await sandboxes.find(sandbox);
      const stream = await sandboxes.commands.start(row, { ...spec, terminal, stdin, onDisconnect });
      return onDisconnect === "kill" ? sandboxes.holds.during(row.id, stream) : stream;
    },
    attach: async (sandbox, command, stdin) => sandboxes.commands.attach(await sandboxes.find(sandbox), command, stdin),
    ...portStreams(engine),
    ...desktopStreams(sandboxes),
    ...notebookStreams(sandboxes),
    readFile: async (sandbox, path, user) => {
      const at = await inside.files(sandbox, path, user);
      return at.files.read(at.path, at.user);
    },
    writeFile: async (sandbox, path, body, { user, mode, parents }) => {
      const at = await inside.files(sandbox, path, user);
      await at.files.write(at.path, at.user, body, {
        ...(mode === undefined ? {} : { mode }),
        ...(parents === undefined ? {} : { parents }),
      });
      return at.files.stat(at.path, at.user);
    },
    carryFile: async (sandbox, path, { user, ...direction }, move) => {
      const at = await inside.files(sandbox, path, user);
      if (at.files.carry === undefined) return undefined;
      await at.files.carry(at.path, at.user, direction, move);
      return at.files.stat(at.path, at.user);
    },
    watchFiles: async (sandbox, path, { user, recursive, signal }) => {
      const at = await inside.files(sandbox, path, user);
      const leave = at.live.concurrency.watches.take();
      signal.addEventListener("abort", leave, { once: true });
      if (signal.aborted) leave();
      return at.files.watch(at.path, at.user, recursive, signal);
    },
    patch: async (sandbox, { promotable }) => {
      const row = await sandboxes.find(sandbox);
      const backend = parts.backends.of(row);
      const workplace = { gather: backend.gather, tool: backend.tool, temporary: engine.temporary };
      const sides = await sidesOf(backend, row);
      return promotable ? makePromotablePatch(workplace, sortingOf(parts, row, sides)) : makePatch(workplace, sides);
    },
    packFiles: async (sandbox, path, user) => {
      const at = await inside.files(sandbox, path, user);
      return pack(at.files, at.path, at.user);
    },
    unpackFiles: async (sandbox, path, archive, user) => {
      const at = await inside.files(sandbox, path, user);
      const { limits } = await sandboxes.find(sandbox);
      return unpack(at.files, at.path, archive, at.user, { temporary: engine.temporary, mostBytes: limits.diskBytes });
    },
    events: (after, options) => eventsOf(engine, events, after, options),
    callHook: (automation, signature, body) => engine.automations.hook(automation, { signature, body }),
    jobOutput: (job, signal) => engine.jobs.output(job, signal),
    runEvents: async (run, after, signal) => {
      await engine.runs.row(run);
      return engine.runs.events(run, after, signal);
    },
  };
}

async function eventsOf(
  engine: EngineParts,
  events: EventFeed,
  after: number,
  { sandbox, use, signal }: EventOptions,
): Promise<AsyncIterable<VivEvent>> {
  const id = sandbox === undefined ? undefined : await subjectId(engine.sandboxes, sandbox);
  if (use !== undefined) await beginUse(engine, use, signal);
  return events.listen(after, { ...(id === undefined ? {} : { sandbox: id }), signal });
}

/** Until the signal. */
async function beginUse({ parts, sandboxes }: EngineParts, { sandbox, as }: Use, signal: AbortSignal): Promise<void> {
  const row = await sandboxes.find(sandbox);
  const live = parts.live.get(row.id);
  if (live === undefined) throw notRunning(row);
  const leave = live.uses.begin(as);
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
}
