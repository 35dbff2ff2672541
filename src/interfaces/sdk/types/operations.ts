// Made from the contracts by scripts/sdk-types.ts.
import type { Agent, AgentProbe } from "./agents.ts";
import type { InstallAgentInput, ListAgentsInput, ListAgentsOutput, ProbeAgentInput } from "./agents-operations.ts";
import type { Question } from "./approvals.ts";
import type { AnswerApprovalInput, InspectApprovalInput, ListApprovalsInput, ListApprovalsOutput } from "./approvals-operations.ts";
import type { AuditReport } from "./audit.ts";
import type { ListAuditInput, ListAuditOutput, ListDecisionsInput, ListDecisionsOutput, ReportDecisionInput, VerifyAuditInput } from "./audit-operations.ts";
import type { Automation, AutomationTest, Firing, MorningReport } from "./automations.ts";
import type { AddAutomationInput, AddAutomationOutput, AutomationSecretInput, AutomationSecretOutput, InspectAutomationInput, InspectAutomationOutput, InspectFiringInput, ListAutomationsInput, ListAutomationsOutput, ListFiringsInput, ListFiringsOutput, PauseAutomationInput, RemoveAutomationInput, ReportFiringsInput, ResumeAutomationInput, RunAutomationInput, TestAutomationInput } from "./automations-operations.ts";
import type { InspectCommandInput, KillCommandInput, ListCommandsInput, ListCommandsOutput, ListProcessesInput, ListProcessesOutput, RunCommandInput } from "./commands-operations.ts";
import type { ReadContextInput, ReadContextOutput, SearchConversationsInput, SearchConversationsOutput } from "./conversations-operations.ts";
import type { PushBrowser } from "./dashboard.ts";
import type { AddPushBrowserInput, EndSessionInput, ListNotificationsOutput, ListSessionsOutput, OpenDashboardInput, OpenDashboardOutput, RemovePushBrowserInput, TestNotificationInput, TestNotificationOutput } from "./dashboard-operations.ts";
import type { DesktopInfo } from "./desktops.ts";
import type { CloseDesktopInput, InspectDesktopInput, ListWindowsInput, ListWindowsOutput, OpenDesktopInput, UseDesktopInput, UseDesktopOutput } from "./desktops-operations.ts";
import type { ListEffectsInput, ListEffectsOutput } from "./effects-operations.ts";
import type { ListEventsInput, ListEventsOutput } from "./events-operations.ts";
import type { ExperimentInfo } from "./experiments.ts";
import type { CancelExperimentInput, InspectExperimentInput, ListExperimentsInput, ListExperimentsOutput, PickWinnerInput, RemoveExperimentInput, RetryExperimentInput, StartExperimentInput } from "./experiments-operations.ts";
import type { FileEntry } from "./files.ts";
import type { ListFilesInput, ListFilesOutput, MakeFolderInput, MoveFileInput, RemoveFileInput, StatFileInput } from "./files-operations.ts";
import type { Job, JobDetail, JobStatus } from "./jobs.ts";
import type { CancelJobInput, InspectJobInput, JobStatusInput, ListJobsInput, ListJobsOutput, ScheduleJobInput, ScheduleJobOutput } from "./jobs-operations.ts";
import type { UsageInput, UsageOutput } from "./models-operations.ts";
import type { NetworkReport } from "./network.ts";
import type { AllowPrivateInput, AllowPrivateOutput, ChangeNetworkInput, ClosedRegistriesInput, ClosedRegistriesOutput, InspectNetworkInput } from "./network-operations.ts";
import type { CodeExecution } from "./notebooks.ts";
import type { ExecuteCodeInput, InspectExecutionInput, InterruptContextInput, ListContextsInput, ListContextsOutput, OpenNotebookInput, OpenNotebookOutput, RemoveContextInput, RestartContextInput } from "./notebooks-operations.ts";
import type { ActionAnswer, SandboxPolicy } from "./policy.ts";
import type { AgentInstructionsInput, AgentInstructionsOutput, DecideActionInput, ExplainPolicyInput, ExplainPolicyOutput, ForgetRuleInput, ImportPolicyInput, ImportPolicyOutput, InspectPolicyInput, ListRulesInput, ListRulesOutput, SetPolicyInput, SetPolicyOutput, TestPolicyInput, TestPolicyOutput, TriageActionInput, TriageActionOutput } from "./policy-operations.ts";
import type { ClosePreviewsInput, ListPortsInput, ListPortsOutput, OpenPreviewInput, OpenPreviewOutput } from "./ports-operations.ts";
import type { PromotionInfo, PromotionPlan } from "./promotions.ts";
import type { ContinuePromotionInput, DiscardPromotionInput, InspectPromotionInput, ListPromotionsInput, ListPromotionsOutput, PlanPromotionInput, PromoteInput, UndoPromotionInput } from "./promotions-operations.ts";
import type { RunInfo, RunMessage } from "./runs.ts";
import type { InspectRunInput, InterruptRunInput, ListBacklogInput, ListBacklogOutput, ListRunEventsInput, ListRunEventsOutput, ListRunMessagesInput, ListRunMessagesOutput, ListRunsInput, ListRunsOutput, RemoveBacklogTaskInput, SayToRunInput, StopRunInput } from "./runs-operations.ts";
import type { CommandResult, Done, RefreshReport, SandboxDetail, SandboxInfo, SandboxStatus, Staleness, SystemDiff } from "./sandboxes.ts";
import type { CreateSandboxInput, CreateSandboxOutput, DiffSandboxInput, DiffSandboxOutput, DiffSystemInput, ExtendSandboxInput, FindSandboxInput, ForkSandboxInput, ForkSandboxOutput, InspectSandboxInput, LimitSandboxInput, ListSandboxesInput, ListSandboxesOutput, PauseSandboxInput, RefreshSandboxInput, RemoveSandboxInput, ResumeSandboxInput, SandboxStatusInput, StalenessInput, StartSandboxInput, StopSandboxInput } from "./sandboxes-operations.ts";
import type { Secret } from "./secrets.ts";
import type { ImportSecretsInput, ImportSecretsOutput, ListSecretsOutput, RemoveSecretInput, SetSecretInput } from "./secrets-operations.ts";
import type { Doctor, ServerStatus } from "./server.ts";
import type { DoctorInput, MachineHistoryOutput, PruneInput, PruneOutput, TrustInput, TrustOutput } from "./server-operations.ts";
import type { Snapshot } from "./snapshots.ts";
import type { CreateSnapshotInput, ListSnapshotsInput, ListSnapshotsOutput, RemoveSnapshotInput, RollbackInput } from "./snapshots-operations.ts";

/** Every operation of the API, for `viv.call`. */
export interface Operations {
  /** Clone the machine. */
  createSandbox: { input: CreateSandboxInput; output: CreateSandboxOutput };
  /** List sandboxes. */
  listSandboxes: { input: ListSandboxesInput; output: ListSandboxesOutput };
  /** One sandbox as a list shows it; nothing of it is measured. */
  findSandbox: { input: FindSandboxInput; output: SandboxInfo };
  /** Everything about a sandbox. */
  inspectSandbox: { input: InspectSandboxInput; output: SandboxDetail };
  /** Throw a sandbox away, with its snapshots. */
  removeSandbox: { input: RemoveSandboxInput; output: Done };
  /** End a sandbox and keep a snapshot. */
  stopSandbox: { input: StopSandboxInput; output: SandboxInfo };
  /** Start a sandbox that has ended again, from the files it left. */
  startSandbox: { input: StartSandboxInput; output: SandboxInfo };
  /** Freeze all processes. */
  pauseSandbox: { input: PauseSandboxInput; output: SandboxInfo };
  /** Thaw all processes. */
  resumeSandbox: { input: ResumeSandboxInput; output: SandboxInfo };
  /** Give a sandbox more time. */
  extendSandbox: { input: ExtendSandboxInput; output: SandboxInfo };
  /** Change the caps of a running sandbox, within this machine's ceilings. */
  limitSandbox: { input: LimitSandboxInput; output: SandboxInfo };
  /** New sandboxes from a snapshot or from the live state. */
  forkSandbox: { input: ForkSandboxInput; output: ForkSandboxOutput };
  /** What changed in the project since the base. */
  diffSandbox: { input: DiffSandboxInput; output: DiffSandboxOutput };
  /** What changed outside the project: packages, /etc, the rest by folder. */
  diffSystem: { input: DiffSystemInput; output: SystemDiff };
  /** How it stands to reality: age, commits, what moved, what it changed, too. */
  sandboxStatus: { input: SandboxStatusInput; output: SandboxStatus };
  /** Bring today's reality into it; its own changes stay, conflicts are marked inside. */
  refreshSandbox: { input: RefreshSandboxInput; output: RefreshReport };
  /** How far behind reality it is. */
  staleness: { input: StalenessInput; output: Staleness };
  /** Run a command to its end and return its output. */
  runCommand: { input: RunCommandInput; output: CommandResult };
  /** Commands that run or ran. */
  listCommands: { input: ListCommandsInput; output: ListCommandsOutput };
  /** One command with its logged output. */
  inspectCommand: { input: InspectCommandInput; output: CommandResult };
  /** Send a signal to a command's process group. */
  killCommand: { input: KillCommandInput; output: Done };
  /** Processes that run inside, also those that commands left behind. */
  listProcesses: { input: ListProcessesInput; output: ListProcessesOutput };
  /** What a sandbox reaches. */
  inspectNetwork: { input: InspectNetworkInput; output: NetworkReport };
  /** Change what a sandbox reaches; connections that are no longer allowed are closed. */
  changeNetwork: { input: ChangeNetworkInput; output: NetworkReport };
  /** Freeze the state of a sandbox. */
  createSnapshot: { input: CreateSnapshotInput; output: Snapshot };
  /** Snapshots as a tree. */
  listSnapshots: { input: ListSnapshotsInput; output: ListSnapshotsOutput };
  /** Remove a snapshot. */
  removeSnapshot: { input: RemoveSnapshotInput; output: Done };
  /** Bring back the state of a snapshot; processes end. */
  rollback: { input: RollbackInput; output: SandboxInfo };
  /** List a folder. */
  listFiles: { input: ListFilesInput; output: ListFilesOutput };
  /** One file. */
  statFile: { input: StatFileInput; output: FileEntry };
  /** Rename a file or folder. */
  moveFile: { input: MoveFileInput; output: Done };
  /** Remove a file or folder. */
  removeFile: { input: RemoveFileInput; output: Done };
  /** Make a folder. */
  makeFolder: { input: MakeFolderInput; output: Done };
  /** Start the desktop of a sandbox, or give one that runs another size. */
  openDesktop: { input: OpenDesktopInput; output: DesktopInfo };
  /** The desktop of a sandbox. */
  inspectDesktop: { input: InspectDesktopInput; output: DesktopInfo };
  /** End the desktop of a sandbox, and its windows. */
  closeDesktop: { input: CloseDesktopInput; output: Done };
  /** Use pointer and keyboard, one action after the other. */
  useDesktop: { input: UseDesktopInput; output: UseDesktopOutput };
  /** Windows and pointer of a desktop. */
  listWindows: { input: ListWindowsInput; output: ListWindowsOutput };
  /** Run code in a context, which is made if it is not there. */
  executeCode: { input: ExecuteCodeInput; output: CodeExecution };
  /** One execution. */
  inspectExecution: { input: InspectExecutionInput; output: CodeExecution };
  /** Contexts of a sandbox. */
  listContexts: { input: ListContextsInput; output: ListContextsOutput };
  /** End what runs in a context; its variables stay. */
  interruptContext: { input: InterruptContextInput; output: Done };
  /** Begin a context anew, without its variables. */
  restartContext: { input: RestartContextInput; output: Done };
  /** End a context. */
  removeContext: { input: RemoveContextInput; output: Done };
  /** Start JupyterLab inside, if it does not run, and make a link that shows it to one browser. */
  openNotebook: { input: OpenNotebookInput; output: OpenNotebookOutput };
  /** Ports inside that have a listener. */
  listPorts: { input: ListPortsInput; output: ListPortsOutput };
  /** Make a link that shows a port inside, at an origin of its own, to one browser; the server listens on loopback from then on. */
  openPreview: { input: OpenPreviewInput; output: OpenPreviewOutput };
  /** Close the previews of a sandbox to all browsers; their open connections end, too. */
  closePreviews: { input: ClosePreviewsInput; output: Done };
  /** Run a piece of code in a sandbox of its own, as soon as there is room. */
  scheduleJob: { input: ScheduleJobInput; output: ScheduleJobOutput };
  /** Where a job is, and what it printed so far. */
  jobStatus: { input: JobStatusInput; output: JobStatus };
  /** Jobs, the newest first. */
  listJobs: { input: ListJobsInput; output: ListJobsOutput };
  /** Everything about a job. */
  inspectJob: { input: InspectJobInput; output: JobDetail };
  /** End a job, or take it out of the queue; the answer comes when it has ended. */
  cancelJob: { input: CancelJobInput; output: Job };
  /** Try several approaches at once; answers at once, and goes on by itself. */
  startExperiment: { input: StartExperimentInput; output: ExperimentInfo };
  /** List experiments, the newest first. */
  listExperiments: { input: ListExperimentsInput; output: ListExperimentsOutput };
  /** One experiment. */
  inspectExperiment: { input: InspectExperimentInput; output: ExperimentInfo };
  /** Stop what runs and keep what was done. */
  cancelExperiment: { input: CancelExperimentInput; output: ExperimentInfo };
  /** Run attempts again that failed, were cancelled, or all. */
  retryExperiment: { input: RetryExperimentInput; output: ExperimentInfo };
  /** Choose the winner. */
  pickWinner: { input: PickWinnerInput; output: ExperimentInfo };
  /** Remove an experiment with its sandboxes. */
  removeExperiment: { input: RemoveExperimentInput; output: Done };
  /** Add an automation. */
  addAutomation: { input: AddAutomationInput; output: AddAutomationOutput };
  /** Automations, by project and name. */
  listAutomations: { input: ListAutomationsInput; output: ListAutomationsOutput };
  /** One automation with its last firings. */
  inspectAutomation: { input: InspectAutomationInput; output: InspectAutomationOutput };
  /** What calls of its webhook are signed with. */
  automationSecret: { input: AutomationSecretInput; output: AutomationSecretOutput };
  /** Start it now, as a person. */
  runAutomation: { input: RunAutomationInput; output: Firing };
  /** What its trigger would do now; nothing is done. */
  testAutomation: { input: TestAutomationInput; output: AutomationTest };
  /** It waits for nothing until it is resumed; what is at work goes on, and what has not begun waits. */
  pauseAutomation: { input: PauseAutomationInput; output: Automation };
  /** It waits for its trigger again. */
  resumeAutomation: { input: ResumeAutomationInput; output: Automation };
  /** Remove it: what is at work ends, and its work is kept. */
  removeAutomation: { input: RemoveAutomationInput; output: Done };
  /** Firings, the newest first. */
  listFirings: { input: ListFiringsInput; output: ListFiringsOutput };
  /** One firing. */
  inspectFiring: { input: InspectFiringInput; output: Firing };
  /** What automations did since a time. */
  reportFirings: { input: ReportFiringsInput; output: MorningReport };
  /** Agents that can be given a task, and what each lacks. */
  listAgents: { input: ListAgentsInput; output: ListAgentsOutput };
  /** Start an agent's program with --version in a throw-away sandbox. */
  probeAgent: { input: ProbeAgentInput; output: AgentProbe };
  /** Fetch an agent's program in the version that Vivarium was tried with. */
  installAgent: { input: InstallAgentInput; output: Agent };
  /** List runs of agents, the newest first. */
  listRuns: { input: ListRunsInput; output: ListRunsOutput };
  /** One run. */
  inspectRun: { input: InspectRunInput; output: RunInfo };
  /** Say something to an agent that works; answered once the message is kept, and its state tells when the agent has it. */
  sayToRun: { input: SayToRunInput; output: RunMessage };
  /** What was said to an agent, and whether it has it. */
  listRunMessages: { input: ListRunMessagesInput; output: ListRunMessagesOutput };
  /** End what an agent does now; it goes on with what it is told next. */
  interruptRun: { input: InterruptRunInput; output: RunInfo };
  /** End an agent, and keep its work. */
  stopRun: { input: StopRunInput; output: RunInfo };
  /** Events of a run, the oldest first. */
  listRunEvents: { input: ListRunEventsInput; output: ListRunEventsOutput };
  /** What agents left for later, the newest first. */
  listBacklog: { input: ListBacklogInput; output: ListBacklogOutput };
  /** Take a task off the backlog. */
  removeBacklogTask: { input: RemoveBacklogTaskInput; output: Done };
  /** The conversation of a run, within a budget of tokens; or what of it fits a search. */
  readContext: { input: ReadContextInput; output: ReadContextOutput };
  /** Records of all conversations that fit a search, by words and by meaning. */
  searchConversations: { input: SearchConversationsInput; output: SearchConversationsOutput };
  /** What a promotion would do. */
  planPromotion: { input: PlanPromotionInput; output: PromotionPlan };
  /** Bring a sandbox's change into reality. */
  promote: { input: PromoteInput; output: PromotionInfo };
  /** Where each change stands, the newest first. */
  listPromotions: { input: ListPromotionsInput; output: ListPromotionsOutput };
  /** One promotion. */
  inspectPromotion: { input: InspectPromotionInput; output: PromotionInfo };
  /** Go on to a later stage, or on from an approval. */
  continuePromotion: { input: ContinuePromotionInput; output: PromotionInfo };
  /** Take back a promotion that waits; nothing is applied. */
  discardPromotion: { input: DiscardPromotionInput; output: PromotionInfo };
  /** Take a promotion back. */
  undoPromotion: { input: UndoPromotionInput; output: PromotionInfo };
  /** Package registries that settings of the machine or the project name, and that a new sandbox would not reach. */
  closedRegistries: { input: ClosedRegistriesInput; output: ClosedRegistriesOutput };
  /** Open a host with a private address for a project's sandboxes, as a person; it counts at once. */
  allowPrivate: { input: AllowPrivateInput; output: AllowPrivateOutput };
  /** Questions that wait for a person, the newest first. */
  listApprovals: { input: ListApprovalsInput; output: ListApprovalsOutput };
  /** One question. */
  inspectApproval: { input: InspectApprovalInput; output: Question };
  /** Answer a question, as a person. */
  answerApproval: { input: AnswerApprovalInput; output: Question };
  /** What the policy says to an action, part by part. */
  explainPolicy: { input: ExplainPolicyInput; output: ExplainPolicyOutput };
  /** Run the examples kept beside the rules. */
  testPolicy: { input: TestPolicyInput; output: TestPolicyOutput };
  /** Is an action safe enough to do, worth a sandbox, or only to be proposed?. */
  triageAction: { input: TriageActionInput; output: TriageActionOutput };
  /** Text for AGENTS.md from the policy in effect. */
  agentInstructions: { input: AgentInstructionsInput; output: AgentInstructionsOutput };
  /** Convert the permission block of an opencode.json. */
  importPolicy: { input: ImportPolicyInput; output: ImportPolicyOutput };
  /** Rules that people added by answering `always`. */
  listRules: { input: ListRulesInput; output: ListRulesOutput };
  /** Take such a rule back: it is asked again. */
  forgetRule: { input: ForgetRuleInput; output: Done };
  /** Decide an action of an agent: recorded before it is answered, asked about where the policy says so. */
  decideAction: { input: DecideActionInput; output: ActionAnswer };
  /** What is enforced for agents in a sandbox. */
  inspectPolicy: { input: InspectPolicyInput; output: SandboxPolicy };
  /** Change level and role of a sandbox's agents, as a person; holds from the next action on. */
  setPolicy: { input: SetPolicyInput; output: SetPolicyOutput };
  /** Keep a secret, or replace it at once. */
  setSecret: { input: SetSecretInput; output: Secret };
  /** Secrets, without their values. */
  listSecrets: { input: Record<string, never>; output: ListSecretsOutput };
  /** Keep the logins of package managers' and git's settings files, each for its host. */
  importSecrets: { input: ImportSecretsInput; output: ImportSecretsOutput };
  /** Forget a secret at once. */
  removeSecret: { input: RemoveSecretInput; output: Done };
  /** Requests that can have changed something outside, the newest first. */
  listEffects: { input: ListEffectsInput; output: ListEffectsOutput };
  /** Tokens and cost of models. */
  usage: { input: UsageInput; output: UsageOutput };
  /** Who decided what, the oldest first. */
  listAudit: { input: ListAuditInput; output: ListAuditOutput };
  /** Whether the chain of records is whole. */
  verifyAudit: { input: VerifyAuditInput; output: AuditReport };
  /** Report a decision of an agent; never blocks it. */
  reportDecision: { input: ReportDecisionInput; output: Done };
  /** Decisions about a sandbox. */
  listDecisions: { input: ListDecisionsInput; output: ListDecisionsOutput };
  /** Events after a sequence number. */
  listEvents: { input: ListEventsInput; output: ListEventsOutput };
  /** Make a link that opens the dashboard once; the server listens on loopback from then on. */
  openDashboard: { input: OpenDashboardInput; output: OpenDashboardOutput };
  /** Browsers that are logged in to the dashboard, and links that were not used yet. */
  listSessions: { input: Record<string, never>; output: ListSessionsOutput };
  /** Log a browser out; its open connections end, too. */
  endSession: { input: EndSessionInput; output: Done };
  /** Ways to a person, and what was sent by them lately, the newest first. */
  listNotifications: { input: Record<string, never>; output: ListNotificationsOutput };
  /** Send a notification that says that it is a test; answers once each channel has tried it once. */
  testNotification: { input: TestNotificationInput; output: TestNotificationOutput };
  /** Send notifications to a browser, as long as its session lasts. */
  addPushBrowser: { input: AddPushBrowserInput; output: PushBrowser };
  /** Send a browser no more notifications. */
  removePushBrowser: { input: RemovePushBrowserInput; output: Done };
  /** What was used of the machine in the last day, as far back as the server runs. */
  machineHistory: { input: Record<string, never>; output: MachineHistoryOutput };
  /** The server and its machine. */
  status: { input: Record<string, never>; output: ServerStatus };
  /** What this machine can do. */
  doctor: { input: DoctorInput; output: Doctor };
  /** Trust the present content of a project's vivarium.json. */
  trust: { input: TrustInput; output: TrustOutput };
  /** Remove finished sandboxes, expired snapshots and leftovers. */
  prune: { input: PruneInput; output: PruneOutput };
  /** Stop the server; sandboxes go on. */
  shutdown: { input: Record<string, never>; output: Done };
}
