/**
 * What a person does, as the audit trail tells it. Every operation and every stream has a row: one that is missing does not compile.
 * Operations that only read are not recorded. Where another part records an operation with more details, it is left to that part.
 */
import { shellWord } from "../../base/schema/shell-words.ts";
import type { OperationName, OutputOf, ParsedOf } from "../../base/schema/contracts.ts";
import type { AuditEntry } from "../../base/schema/audit.ts";
import { DEFAULT_YOLO } from "../../base/schema/policy.ts";
import type { Sandbox } from "../../base/schema/sandbox.ts";
import type { CommandSpec } from "../../base/schema/command.ts";
import type { Streams } from "./operations.ts";

type Details = Readonly<Record<string, AuditEntry["arguments"] | undefined>>;

export interface AuditedAction {
  readonly action: string;
  /** Left out, it is the name of the sandbox. */
  readonly target?: string;
  readonly details?: Details;
  /** Id of a sandbox, where it is none that the input names. */
  readonly sandbox?: string;
}

/** Recorded before the operation, once its sandbox is found. */
export interface RecordedBefore<Input extends readonly unknown[]> {
  readonly act: (...input: Input) => AuditedAction | undefined;
  /** Done so often, one after the other, that records wait a moment for each other. */
  readonly often?: true;
  /** Whether more is possible afterwards than before: then it is not done without a durable record. */
  readonly widens?: (...input: Input) => boolean;
}

/** Recorded after the operation, when the new thing has an id; an operation that is cut short leaves nothing. */
export interface RecordedAfter<Input extends readonly unknown[], Output> {
  readonly made: (output: Output, ...input: Input) => readonly AuditedAction[];
  /** What the operation does besides; recorded before it. */
  readonly before?: (...input: Input) => AuditedAction | undefined;
  readonly widens?: (...input: Input) => boolean;
}

interface NotRecorded {
  readonly not: string;
}

export type Rule<Input extends readonly unknown[], Output> = RecordedBefore<Input> | RecordedAfter<Input, Output> | NotRecorded;

const LOOKS: NotRecorded = { not: "only looks" };
const itself = (where: string): NotRecorded => ({ not: `recorded by ${where}` });
const plain = (action: string): RecordedBefore<readonly unknown[]> => ({ act: () => ({ action }) });

/** The rest of a long line says no more about it. */
const LINE = 16_384;

function line(words: readonly string[]): string {
  let text = "";
  for (const word of words) {
    if (text.length > LINE) break;
    const part = word.slice(0, LINE);
    text += `${text === "" ? "" : " "}${shellWord(part)}`;
  }
  return text;
}

/** Only the names of variables are recorded. */
function command({ command: words, cwd, user, env }: Partial<CommandSpec> & Pick<CommandSpec, "command">): {
  target: string;
  details: Details;
} {
  return { target: line(words), details: { cwd, user, env: env === undefined ? undefined : Object.keys(env) } };
}

function madeOf({ id, name }: Sandbox, action: string, details: Details): AuditedAction {
  return { action, target: name, sandbox: id, details };
}

/** With what is opened, or run at once, before there is a name. */
function beforeCreate(input: ParsedOf<"createSandbox">): AuditedAction | undefined {
  const { project, git, empty, name, network, unwalled, yolo, run } = input;
  const details = { project, git: git?.url, empty, network, unwalled, yolo };
  if (run !== undefined) return { action: "sandbox.run", target: line(run.command), details: { ...details, ...command(run).details } };
  return opensSandbox(input) ? { action: "sandbox.open", target: name ?? project ?? git?.url ?? "an empty workspace", details } : undefined;
}

/** Whether the new sandbox is more open than one without any options. */
function opensSandbox({ git, network, unwalled, yolo }: ParsedOf<"createSandbox">): boolean {
  return git !== undefined || (network ?? "off") !== "off" || unwalled === true || (yolo ?? 0) > DEFAULT_YOLO;
}

function jobDetails({ kind, code, project, network, limits }: ParsedOf<"scheduleJob">): Details {
  return { kind, code: code.slice(0, LINE), project, network, limits: limits as Details[string] };
}

function opensNetworkOf({ network }: ParsedOf<"scheduleJob">): boolean {
  return (network ?? "off") !== "off";
}

/** Whether anything may be reached afterwards that was not before. */
function opensNetwork({ mode, allow, ports, effects }: ParsedOf<"changeNetwork">): boolean {
  return (mode !== undefined && mode !== "off") || (allow ?? []).length > 0 || ports !== undefined || effects === "record";
}

export const RECORDED_OPERATIONS: { readonly [Name in OperationName]: Rule<[ParsedOf<Name>], OutputOf<Name>> } = {
  createSandbox: {
    made: (box, { project, git, empty, network, unwalled, limits, level, yolo, role }) => [
      madeOf(box, "sandbox.create", {
        project,
        git: git?.url,
        ref: git?.ref,
        empty,
        network,
        unwalled,
        limits: limits as Details[string],
        level,
        yolo,
        role,
      }),
    ],
    before: beforeCreate,
    widens: opensSandbox,
  },
  listSandboxes: LOOKS,
  findSandbox: LOOKS,
  inspectSandbox: LOOKS,
  removeSandbox: plain("sandbox.remove"),
  stopSandbox: plain("sandbox.stop"),
  startSandbox: plain("sandbox.start"),
  pauseSandbox: plain("sandbox.pause"),
  resumeSandbox: plain("sandbox.resume"),
  extendSandbox: { act: ({ by, idle }) => ({ action: "sandbox.extend", details: { by, idle } }) },
  limitSandbox: { act: ({ cpus, memoryBytes, processes }) => ({ action: "sandbox.limits", details: { cpus, memoryBytes, processes } }) },
  forkSandbox: {
    made: ({ sandboxes }, { sandbox, snapshot, level, yolo, role }) =>
      sandboxes.map((box) => madeOf(box, "sandbox.fork", { from: sandbox, snapshot, level, yolo, role })),
    // The one it is a fork of may have been bound more tightly.
    before: ({ sandbox, level, yolo, role }) =>
      level === undefined && yolo === undefined && role === undefined
        ? undefined
        : { action: "sandbox.open", target: `fork of ${sandbox}`, details: { level, yolo, role } },
    widens: ({ level, yolo, role }) => level !== undefined || yolo !== undefined || role !== undefined,
  },
  diffSandbox: LOOKS,
  diffSystem: LOOKS,
  sandboxStatus: LOOKS,
  refreshSandbox: plain("sandbox.refresh"),
  staleness: LOOKS,
  runCommand: { act: (input) => ({ action: "exec", ...command(input) }), often: true },
  listCommands: LOOKS,
  inspectCommand: LOOKS,
  listProcesses: LOOKS,
  killCommand: { act: ({ command: id, signal }) => ({ action: "command.kill", target: id, details: { signal } }) },
  inspectNetwork: LOOKS,
  changeNetwork: {
    act: ({ mode, allow, deny, ports, effects }) => ({
      action: "network.change",
      target: mode ?? "rules",
      details: { mode, allow: allow as Details[string], deny, ports, effects },
    }),
    widens: opensNetwork,
  },
  createSnapshot: { act: ({ name }) => ({ action: "snapshot.create", details: { name } }) },
  listSnapshots: LOOKS,
  executeCode: {
    act: ({ context, code }) => ({ action: "code.execute", target: context, details: { code: code.slice(0, LINE) } }),
    often: true,
  },
  inspectExecution: LOOKS,
  listContexts: LOOKS,
  interruptContext: { act: ({ context }) => ({ action: "code.interrupt", target: context }) },
  restartContext: { act: ({ context }) => ({ action: "code.restart", target: context }) },
  removeContext: { act: ({ context }) => ({ action: "code.remove", target: context }) },
  listPorts: LOOKS,
  openPreview: { act: ({ port, frame }) => ({ action: "preview.open", details: { port, frame } }) },
  openNotebook: { act: ({ frame }) => ({ action: "notebook.open", details: { frame } }) },
  closePreviews: plain("preview.close"),
  openDesktop: { act: ({ browser }) => ({ action: "desktop.open", details: { browser } }) },
  inspectDesktop: LOOKS,
  closeDesktop: plain("desktop.close"),
  // What is typed may be a password.
  useDesktop: { act: ({ actions }) => ({ action: "desktop.use", details: { actions: actions.map((action) => action.do) } }), often: true },
  listWindows: LOOKS,
  removeSnapshot: { act: ({ snapshot }) => ({ action: "snapshot.remove", target: snapshot }) },
  rollback: { act: ({ snapshot }) => ({ action: "sandbox.rollback", target: snapshot }) },
  listFiles: LOOKS,
  statFile: LOOKS,
  moveFile: { act: ({ path, to, user }) => ({ action: "file.move", target: path, details: { to, user } }) },
  removeFile: { act: ({ path, user }) => ({ action: "file.remove", target: path, details: { user } }) },
  makeFolder: { act: ({ path, user }) => ({ action: "file.mkdir", target: path, details: { user } }) },
  addAutomation: {
    made: ({ id, name }, { project, spec }) => [
      {
        action: "automation.add",
        target: name,
        details: { automation: id, project, authority: spec.authority, when: spec.when?.on, reality: spec.reality },
      },
    ],
    before: ({ name, project, spec }) => ({
      action: "automation.authority",
      target: name,
      details: { project, authority: spec.authority },
    }),
    widens: () => true,
  },
  listAutomations: LOOKS,
  inspectAutomation: LOOKS,
  automationSecret: { act: ({ automation, renew }) => ({ action: "automation.secret", target: automation, details: { renew } }) },
  runAutomation: { act: ({ automation }) => ({ action: "automation.run", target: automation }) },
  testAutomation: LOOKS,
  pauseAutomation: { act: ({ automation }) => ({ action: "automation.pause", target: automation }) },
  resumeAutomation: { act: ({ automation }) => ({ action: "automation.resume", target: automation }) },
  removeAutomation: { act: ({ automation }) => ({ action: "automation.remove", target: automation }) },
  listFirings: LOOKS,
  inspectFiring: LOOKS,
  reportFirings: LOOKS,
  scheduleJob: {
    made: ({ job_id }, input) => [{ action: "job.schedule", target: job_id, details: jobDetails(input) }],
    before: (input) => (opensNetworkOf(input) ? { action: "sandbox.open", target: "a job", details: jobDetails(input) } : undefined),
    widens: opensNetworkOf,
  },
  jobStatus: LOOKS,
  listJobs: LOOKS,
  inspectJob: LOOKS,
  cancelJob: { act: ({ job }) => ({ action: "job.cancel", target: job }) },
  startExperiment: {
    before: ({ project, git, unwalled }) =>
      git !== undefined || unwalled === true
        ? { action: "sandbox.open", target: project ?? git?.url ?? "", details: { git: git?.url, unwalled } }
        : undefined,
    widens: ({ git, unwalled }) => git !== undefined || unwalled === true,
    made: ({ id, project }, { git, attempts, checks, promote }) => [
      {
        action: "experiment.start",
        target: id,
        details: {
          project,
          git: git?.url,
          attempts: attempts.map(({ command: text, agent }) => text ?? `${agent?.agent ?? ""}: ${agent?.task ?? ""}`),
          checks,
          promote,
        },
      },
    ],
  },
  listAgents: LOOKS,
  probeAgent: { act: ({ agent, project }) => ({ action: "agent.probe", target: agent, details: { project } }) },
  installAgent: {
    made: ({ program, version }, { agent }) => [{ action: "agent.install", target: agent, details: { version, program } }],
  },
  listRuns: LOOKS,
  listBacklog: LOOKS,
  removeBacklogTask: { act: ({ task }) => ({ action: "backlog.remove", target: task }) },
  inspectRun: LOOKS,
  listRunMessages: LOOKS,
  listRunEvents: LOOKS,
  sayToRun: { act: ({ run, text, way }) => ({ action: "run.say", target: run, details: { text, way } }) },
  interruptRun: { act: ({ run }) => ({ action: "run.interrupt", target: run }) },
  stopRun: { act: ({ run }) => ({ action: "run.stop", target: run }) },
  listExperiments: LOOKS,
  inspectExperiment: LOOKS,
  cancelExperiment: { act: ({ experiment }) => ({ action: "experiment.cancel", target: experiment }) },
  retryExperiment: { act: ({ experiment, all }) => ({ action: "experiment.retry", target: experiment, details: { all } }) },
  pickWinner: { act: ({ experiment, attempt }) => ({ action: "experiment.pick", target: experiment, details: { attempt } }) },
  removeExperiment: { act: ({ experiment }) => ({ action: "experiment.remove", target: experiment }) },
  readContext: LOOKS,
  searchConversations: LOOKS,
  planPromotion: LOOKS,
  promote: itself("promotions"),
  listPromotions: LOOKS,
  inspectPromotion: LOOKS,
  continuePromotion: itself("promotions"),
  discardPromotion: itself("promotions"),
  undoPromotion: itself("promotions"),
  listApprovals: LOOKS,
  inspectApproval: LOOKS,
  answerApproval: itself("approvals"),
  closedRegistries: LOOKS,
  allowPrivate: itself("approvals"),
  explainPolicy: LOOKS,
  testPolicy: LOOKS,
  triageAction: LOOKS,
  agentInstructions: LOOKS,
  importPolicy: LOOKS,
  listRules: LOOKS,
  forgetRule: itself("approvals"),
  decideAction: itself("the decision"),
  inspectPolicy: LOOKS,
  setPolicy: itself("the change of the policy"),
  setSecret: itself("secrets"),
  importSecrets: itself("secrets"),
  listSecrets: LOOKS,
  removeSecret: itself("secrets"),
  listEffects: LOOKS,
  usage: LOOKS,
  listAudit: LOOKS,
  verifyAudit: LOOKS,
  reportDecision: itself("what it reports"),
  listDecisions: LOOKS,
  listEvents: LOOKS,
  openDashboard: itself("sessions"),
  listSessions: LOOKS,
  endSession: itself("sessions"),
  listNotifications: LOOKS,
  testNotification: { act: ({ channel }) => ({ action: "notifications.test", target: channel ?? "every channel" }) },
  addPushBrowser: {
    made: ({ id, service }, { session }) => [{ action: "notifications.subscribe", target: id, details: { session, service } }],
  },
  removePushBrowser: { act: ({ browser }) => ({ action: "notifications.unsubscribe", target: browser }) },
  machineHistory: LOOKS,
  status: LOOKS,
  doctor: LOOKS,
  trust: itself("the trust that changes"),
  prune: { act: ({ all }) => ({ action: "server.prune", target: all ? "everything" : "what has ended" }) },
  shutdown: { act: () => ({ action: "server.stop", target: "the server" }) },
};

export const RECORDED_STREAMS: {
  readonly [Name in keyof Streams]: Rule<Parameters<Streams[Name]>, Awaited<ReturnType<Streams[Name]>>>;
} = {
  exec: {
    act: (_, open) => {
      const { target, details } = command(open);
      return { action: "exec", target, details: { ...details, terminal: open.terminal !== undefined } };
    },
    often: true,
  },
  // A caller that only listens changes nothing.
  attach: { act: (_, id, stdin) => (stdin ? { action: "command.attach", target: id } : undefined) },
  executionEvents: LOOKS,
  screenshot: LOOKS,
  desktop: { act: (_, control) => (control ? { action: "desktop.control" } : undefined) },
  // Bytes between a person's program and one inside, as often as a page in a browser asks for them.
  dial: LOOKS,
  lead: LOOKS,
  notebook: LOOKS,
  readFile: { act: (_, path, user) => ({ action: "file.read", target: path, details: { user } }) },
  writeFile: { act: (_, path, __, { user, mode }) => ({ action: "file.write", target: path, details: { user, mode } }) },
  carryFile: {
    act: (_, path, how) => ({
      action: how.op === "read" ? "file.read" : "file.write",
      target: path,
      details: { user: how.user, mode: how.op === "write" ? how.mode : undefined },
    }),
  },
  watchFiles: LOOKS,
  // The triage of its firing is recorded; a flood of calls must not fill the trail.
  callHook: itself("automations"),
  runEvents: LOOKS,
  jobOutput: LOOKS,
  patch: LOOKS,
  packFiles: { act: (_, path, user) => ({ action: "file.read", target: path, details: { user, archive: true } }) },
  unpackFiles: { act: (_, path, __, user) => ({ action: "file.write", target: path, details: { user, archive: true } }) },
  events: LOOKS,
};
