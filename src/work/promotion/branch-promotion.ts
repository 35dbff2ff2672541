/** A change as a branch: committed on the HEAD that the clone saw, checked as exactly that commit, pushed, and offered for merging. */
import { readFile } from "node:fs/promises";
import type { CheckSettings } from "../checks/verification.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import { repositoryState, requireCommit } from "../../sandbox/changes/commit-reader.ts";
import type { CheckResult } from "../../base/schema/check.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { BranchResult, PromoteInput } from "../../base/schema/promotion.ts";
import type { PromotionRow, SandboxRow } from "../../base/store/rows.ts";
import type { AskedLines } from "./asked-lines.ts";
import { branchName } from "./branch-name.ts";
import { prepareBranch, removeBranch, type BranchConflict, type BranchRequest } from "./branch.ts";
import { oneLine } from "./commit-message.ts";
import { openPullRequest, type Forge } from "./forge.ts";
import { checkSettingsOf, type StageContext } from "./stage-run.ts";
import type { RunInside } from "./keep-commits.ts";
import { describeConflict, type PreparedPlan } from "./plan.ts";
import type { PromotionParts } from "./promotions.ts";
import { push, type PushResult } from "./push.ts";
import type { Origin } from "./source.ts";
import type { PlannedStage } from "./stages.ts";

type BranchInput = NonNullable<PromoteInput["branch"]>;
type Environment = Readonly<Record<string, string>>;

export interface BranchOutcome {
  readonly row: PromotionRow;
  readonly checks: CheckResult[];
  readonly failure?: string;
  readonly note?: string;
}

const NOTHING_ASKED: BranchInput = { kind: "fix", pullRequest: false, keepCommits: false };

/** A pull request needs a branch that is pushed: to where most projects push, unless another remote is named. */
export function remoteOf({ push: remote, pullRequest }: BranchInput): string | undefined {
  return remote ?? (pullRequest ? "origin" : undefined);
}

export class BranchPromotion {
  readonly #all: PromotionParts;
  readonly #signal: AbortSignal;

  constructor(all: PromotionParts, signal: AbortSignal) {
    this.#all = all;
    this.#signal = signal;
  }

  /** The way of a branch: made and checked, then pushed. */
  stages(asked: BranchInput, { checks, folders }: AskedLines): PlannedStage[] {
    const plain = (name: string, apply: PlannedStage["apply"]): PlannedStage => ({ name, apply, checks: [], after: [], approval: "none" });
    const remote = remoteOf(asked);
    const pushed = remote === undefined ? [] : [plain("pushed", { push: remote })];
    return [plain("sandbox", "none"), { ...plain("branch", "branch"), checks, cwd: folders.checks }, ...pushed];
  }

  async run(
    row: PromotionRow,
    source: Origin,
    prepared: PreparedPlan,
    stage: PlannedStage,
    context: Pick<StageContext, "setup" | "setupIn" | "checkTimeoutMs" | "env">,
  ): Promise<BranchOutcome> {
    const { apply } = stage;
    if (typeof apply === "object" && apply !== null && "push" in apply) return this.#push(row, apply.push, context.env);
    const { parts, temporary } = this.#all;
    const parent = requireCommit(await repositoryState(parts, source.row, source.snapshot, temporary));
    return this.#make(row, source, { parent, prepared, checkSettings: checkSettingsOf(stage, context), env: context.env });
  }

  async #make(row: PromotionRow, source: Origin, how: BranchCommitInput): Promise<BranchOutcome> {
    const asked = row.input?.branch ?? NOTHING_ASKED;
    const message = row.message ?? `Change of ${row.sandboxName ?? "a sandbox"}`;
    const { kind, ticket } = asked;
    const branch = asked.name ?? (await branchName({ kind, message, ...(ticket === undefined ? {} : { ticket }) }));
    const request: BranchRequest = {
      project: row.project,
      temporary: this.#all.temporary,
      parent: how.parent,
      changes: how.prepared.own,
      contents: how.prepared.contents,
      branch,
      message,
      checks: how.checkSettings.checks.map((name) => ({ name, passed: true })),
      variables: how.env,
      ...(asked.coAuthor === undefined ? {} : { coAuthor: asked.coAuthor }),
    };
    if (!asked.keepCommits) return this.#publish(row, request, how);
    const fork = await this.#all.sandboxes.branch(source.row.id, source.snapshot, { role: "commits" });
    try {
      return await this.#publish(row, { ...request, keepCommits: runIn(this.#all.sandboxes, fork) }, how);
    } finally {
      await this.#all.sandboxes.remove(fork.id);
    }
  }

  async #publish(row: PromotionRow, request: BranchRequest, how: BranchCommitInput): Promise<BranchOutcome> {
    const prepared = await prepareBranch(request);
    try {
      if (prepared.outcome === "conflict") return await this.#conflict(row, prepared, how);
      await prepared.publish();
    } finally {
      await prepared.close();
    }
    const branch: BranchResult = { name: prepared.branch, commit: prepared.commit, pushedTo: null, pullRequest: null };
    const now = { ...row, branch };
    const checks = await this.#check(row, prepared.commit, how);
    const failed = checks.find(({ passed }) => !passed);
    if (failed === undefined) return { row: now, checks, ...(prepared.notes.length === 0 ? {} : { note: prepared.notes.join(" ") }) };
    await removeBranch(row.project, prepared.branch, prepared.commit);
    const failure = `\`${failed.command}\` ended with ${failed.exitCode} on a clone of exactly that commit; the branch was not kept.`;
    return { row: { ...row, branch: null }, checks, failure };
  }

  /** In a clone that has the commit checked out and nothing of what the user has not committed. */
  async #check(row: PromotionRow, commit: string, { checkSettings, env }: BranchCommitInput): Promise<CheckResult[]> {
    if (checkSettings.checks.length === 0) return [];
    const { sandboxes, verification } = this.#all;
    const { id } = await sandboxes.create({ project: row.project, env: { ...env }, idleMs: 0, labels: { role: "verification" } });
    try {
      const clone = await sandboxes.find(id);
      await runThrough(sandboxes, clone, checkout(commit));
      const verdict = await verification.judge(clone, checkSettings, this.#signal);
      return [...(verdict.setup === null ? [] : [verdict.setup]), ...verdict.checks];
    } finally {
      await sandboxes.remove(id);
    }
  }

  /** The merged state, with its conflicts marked, in a sandbox where a person or an agent solves them. */
  async #conflict(
    row: PromotionRow,
    { conflicts, changes, contents }: BranchConflict,
    { parent, env }: BranchCommitInput,
  ): Promise<BranchOutcome> {
    const { sandboxes, verification } = this.#all;
    const { id, name } = await sandboxes.create({ project: row.project, env: { ...env }, labels: { role: "conflict", promotion: row.id } });
    try {
      const clone = await sandboxes.find(id);
      await runThrough(sandboxes, clone, checkout(parent));
      await verification.apply(clone, changes, contents);
    } catch (error) {
      await sandboxes.remove(id);
      throw error;
    }
    const described = conflicts.map(describeConflict);
    const plan = row.plan === null ? null : { ...row.plan, conflicts: described };
    const failure = `${described[0]?.path ?? ""} can't be merged with the commit that the clone saw; sandbox ${name} holds the merged state with its conflicts marked.`;
    return { row: { ...row, plan }, checks: [], failure };
  }

  async #push(row: PromotionRow, remote: string, env: Environment): Promise<BranchOutcome> {
    const { branch } = row;
    if (branch === null)
      throw new VivError("illegal_transition", "There is no branch to push.", { remedy: "Put a stage with `branch` before it." });
    const { address, repository } = await push({ project: row.project, remote, branch: branch.name, variables: env, signal: this.#signal });
    const pushed = { ...row, branch: { ...branch, pushedTo: address } };
    if (row.input?.branch?.pullRequest !== true) return { row: pushed, checks: [], note: `Pushed to ${address}.` };
    const url = await this.#pullRequest(pushed, remote, repository);
    return { row: { ...pushed, branch: { ...pushed.branch, pullRequest: url } }, checks: [], note: `Offered at ${url}.` };
  }

  async #pullRequest(row: PromotionRow, remote: string, repository: PushResult["repository"]): Promise<string> {
    if (repository === undefined)
      throw new VivError("config_invalid", `The remote ${remote} is not on a forge.`, {
        remedy: "Pull requests need a remote of a forge such as GitHub.",
      });
    const message = row.message ?? `Change of ${row.sandboxName ?? "a sandbox"}`;
    const body = `${message}\n\n${row.plan?.files ?? 0} files, change ${row.plan?.hash ?? ""}.`;
    const { url } = await openPullRequest({
      forge: await this.#forge(),
      repository,
      branch: row.branch?.name ?? "",
      title: oneLine(message),
      body,
      signal: this.#signal,
    });
    return url;
  }

  async #forge(): Promise<Forge> {
    const { forge } = this.#all.parts.user;
    const token = forge?.token ?? (forge?.tokenFile === undefined ? undefined : (await readFile(forge.tokenFile, "utf8")).trim());
    if (forge === undefined || token === undefined)
      throw new VivError("config_invalid", "No forge is configured for pull requests.", {
        remedy: "Set `forge` with its address and token in the user config, see docs/CONFIG.md.",
      });
    return { url: forge.url, token, ...(forge.host === undefined ? {} : { host: forge.host }) };
  }
}

interface BranchCommitInput {
  readonly parent: string;
  readonly prepared: PreparedPlan;
  readonly checkSettings: CheckSettings;
  readonly env: Environment;
}

/** Ignored folders such as dependencies stay. */
function checkout(commit: string): string[] {
  return ["sh", "-c", 'git -c advice.detachedHead=false checkout -q -f --detach "$0" && git clean -qfd', commit];
}

async function runThrough(sandboxes: Sandboxes, row: SandboxRow, command: string[]): Promise<void> {
  const { end, stderr } = await sandboxes.commands.run(row, { command }, undefined);
  if (end?.exitCode !== 0)
    throw new VivError("internal", `A clone could not be brought to the commit: ${stderr.trim().split("\n").at(-1) ?? ""}`);
}

/** The output of a command inside; what it says is hostile and only parsed. */
function runIn(sandboxes: Sandboxes, row: SandboxRow): RunInside {
  return async function* (command) {
    const stream = await sandboxes.commands.start(row, { command: [...command], onDisconnect: "kill" });
    try {
      for await (const chunk of stream.output) if (chunk.stream === "stdout") yield chunk.data;
      const end = await stream.end;
      if (end.exitCode !== 0) throw new VivError("unsupported", `git ended with ${end.exitCode} inside the sandbox.`);
    } finally {
      stream.close();
    }
  };
}
