/** Opens what is done with sandboxes: checks, promotions, experiments, reviews, refreshes, conversations, jobs, automations and notifications. What a server before left half done goes on. */
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import { agentsFolder, runtimesFolder } from "../base/config/paths.ts";
import type { State } from "../base/open.ts";
import type { CellHost } from "../base/host/cell-host.ts";
import type { Closers } from "../base/host/closers.ts";
import { RepeatedTasks } from "../base/host/repeated-tasks.ts";
import { VivError } from "../base/schema/errors.ts";
import { LIMITS } from "../base/schema/limits.ts";
import type { Payer } from "../rules/models/accounts.ts";
import type { Rules } from "../rules/open.ts";
import { SealingKey } from "../rules/secrets/sealing-key.ts";
import type { SandboxFloor } from "../sandbox/open.ts";
import type { Sandboxes } from "../sandbox/sandboxes.ts";
import type { Parts } from "../sandbox/shared/parts.ts";
import { Adapters } from "./agents/adapters.ts";
import { Agents } from "./agents/agents.ts";
import { AgentInstalls } from "./agents/install.ts";
import { Runs } from "./agents/runs.ts";
import { Clones } from "./checks/clones.ts";
import { Verification } from "./checks/verification.ts";
import { Automations } from "./automation/automations.ts";
import { machineClock } from "./automation/clock.ts";
import { Conversations } from "./conversations/conversations.ts";
import { ExtractiveSummarizer } from "./conversations/extractive-summarizer.ts";
import { LocalEmbedder } from "./conversations/local-embedder.ts";
import { ModelEmbedder } from "./conversations/model-embedder.ts";
import { ModelSummarizer } from "./conversations/model-summarizer.ts";
import { Experiments, type Winners } from "./experiments/experiments.ts";
import { parallelByMachine } from "./experiments/queue.ts";
import { Jobs } from "./jobs/jobs.ts";
import { NodeRuntime } from "./jobs/node-runtime.ts";
import { ModelJudge } from "./guardian/model-judge.ts";
import type { Notifications } from "./notifications/notifications.ts";
import { openNotifications, type NotificationsOptions } from "./notifications/open.ts";
import type { PushBrowsers } from "./notifications/push/browsers.ts";
import { Promotions, type PromotionParts } from "./promotion/promotions.ts";
import { Transactions } from "./promotion/transaction.ts";
import { Reviews } from "./reviews/reviews.ts";
import { SandboxRefresh, type CommonGround } from "./refresh/refresh.ts";

export interface Work {
  readonly agents: Agents;
  readonly runs: Runs;
  readonly conversations: Conversations;
  readonly experiments: Experiments;
  /** Absent where there is no cell. */
  readonly promotions: Promotions | undefined;
  readonly refresh: SandboxRefresh;
  readonly reviews: Reviews;
  readonly jobs: Jobs;
  readonly notifications: Notifications;
  readonly pushBrowsers: PushBrowsers;
  readonly automations: Automations;
}

export async function openWork(
  state: State,
  rules: Rules,
  { parts, registry, sandboxes }: SandboxFloor,
  { host, origin }: { readonly host: CellHost | undefined } & Pick<NotificationsOptions, "origin">,
  closers: Closers,
): Promise<Work> {
  const { audit, actions, approvals, models } = rules;
  const { store, log, temporary } = state;
  const { embeddings, summaries } = state.user.memory;
  const { judge: judging } = state.user.guardian;
  const embedder = embeddings === undefined ? new LocalEmbedder() : new ModelEmbedder(models, embeddings);
  const summarizer = new ExtractiveSummarizer();
  const byModel = summaries && ((payer: Payer) => new ModelSummarizer({ models, chosen: summaries, otherwise: summarizer, log }, payer));
  const conversations = new Conversations({ store, log, embedder, summarizer, byModel });
  closers.add(() => conversations.close());
  const clones = new Clones(parts, sandboxes);
  const verification = new Verification(parts, sandboxes, clones);
  const promotions = await openPromotions(state, { parts, audit, registry, sandboxes, verification, temporary }, host, closers);
  const installs = new AgentInstalls({ folder: agentsFolder(state.paths), env: state.env });
  const adapters = new Adapters(state.user.agents);
  const agents = new Agents({ adapters, installs, models, sandboxes, home: parts.home, state: parts.state });
  const runs = new Runs({
    parts,
    sandboxes,
    actions,
    approvals,
    audit,
    models,
    conversations,
    agents,
    temporary,
    judge: judging && ((payer) => new ModelJudge(models, judging, payer)),
  });
  const experiments = new Experiments({ parts, sandboxes, clones, verification, temporary, runs }, winnersOf(promotions));
  const reviews = new Reviews({ parts, sandboxes, clones, verification, temporary, runs, audit });
  closers.add(() => reviews.close());
  // Before runs are closed, so that none of its attempts is told that its agent broke off.
  closers.add(() => experiments.close());
  // Again, so that it is closed first: an experiment that ends waits for the promotion of its winner.
  closers.add(() => promotions?.close());
  const common: CommonGround = promotions?.common ?? (async (_store, _row, _snapshot, sides) => sides);
  const refresh = new SandboxRefresh({ parts, registry, sandboxes, common, temporary });
  await experiments.resume();
  await reviews.resume();
  const jobs = await openJobs(state, parts, sandboxes, closers);
  const automations = new Automations({
    parts,
    audit,
    sandboxes,
    verification,
    experiments,
    promotions,
    clock: machineClock,
    env: state.env,
    key: new SealingKey(join(state.paths.home, "automation-key")),
  });
  // Before experiments are closed: none of its firings is told that its work was cancelled.
  closers.add(() => automations.close());
  await automations.resume();
  const tasks = new RepeatedTasks(log);
  closers.add(() => tasks.close());
  tasks.every("removing old firings", LIMITS.reconcileEveryMs, () => automations.sweep());
  const told = await openNotifications(state, rules, { origin, reach: parts.reach }, closers);
  return { agents, runs, conversations, experiments, promotions, refresh, reviews, jobs, automations, ...told };
}

async function openJobs({ paths, user, log }: State, parts: Parts, sandboxes: Sandboxes, closers: Closers): Promise<Jobs> {
  const parallel = user.jobs.parallel ?? parallelByMachine(availableParallelism(), totalmem());
  const jobs = new Jobs({ parts, sandboxes, node: new NodeRuntime(runtimesFolder(paths)), parallel });
  closers.add(() => jobs.close());
  await jobs.resume();
  const tasks = new RepeatedTasks(log);
  closers.add(() => tasks.close());
  tasks.every("removing what jobs left", LIMITS.reconcileEveryMs, () => jobs.sweep());
  return jobs;
}

function winnersOf(promotions: Promotions | undefined): Winners {
  return {
    promote: async (winner) => {
      if (promotions === undefined) throw new VivError("unsupported", "This machine has no cell, and promotions need it.");
      return promotions.promoteWinner(winner);
    },
    discard: async (promotion) => promotions?.discard(promotion, "Another attempt is to be chosen."),
  };
}

/** Writing to real projects takes the cell, walls or not. */
async function openPromotions(
  { paths, log }: State,
  all: Omit<PromotionParts, "transactions" | "folder">,
  host: CellHost | undefined,
  closers: Closers,
): Promise<Promotions | undefined> {
  if (host === undefined) return undefined;
  const transactions = new Transactions(host, join(paths.home, "transactions"), all.parts.reach);
  const promotions = new Promotions({ ...all, transactions, folder: join(paths.home, "promotions") });
  closers.add(() => promotions.close());
  await promotions.recover();
  const tasks = new RepeatedTasks(log);
  closers.add(() => tasks.close());
  tasks.every("finishing promotions", LIMITS.reconcileEveryMs, () => promotions.retry());
  return promotions;
}
