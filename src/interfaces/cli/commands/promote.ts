import type { Client } from "../../client/client.ts";
import { VivError } from "../../../base/schema/errors.ts";
import type { InputOf } from "../../../base/schema/contracts.ts";
import type { Promotion } from "../../../base/schema/promotion.ts";
import { approverToken } from "../approver.ts";
import { command, type Invocation, type OptionDeclarations } from "../command.ts";
import { runPromotion, promotionExit } from "../promote-run.ts";
import { printPlan, printSettled } from "../promotion-view.ts";
import { findSource, type Source } from "../references.ts";
import { isWithin } from "../within.ts";
import { usageError } from "../values.ts";
import { definedOnly } from "../defined-only.ts";

const CONFLICT = 3;
const KINDS = ["fix", "feat", "chore", "docs", "refactor", "test", "perf"] as const;

const BRANCH_OPTIONS = {
  kind: { type: "text", completes: KINDS, value: "KIND", summary: `With --branch: ${KINDS.join(", ")}; fix if left out` },
  ticket: { type: "text", value: "TICKET", summary: "With --branch: a ticket for the branch's name, such as T-12" },
  "branch-name": { type: "text", value: "NAME", summary: "With --branch: its whole name, instead of KIND/TICKET-words-of-the-message" },
  push: { type: "text", value: "REMOTE", summary: "With --branch: push it to this remote, never forced" },
  pr: { type: "flag", summary: "With --branch: push it, to origin if --push names no other remote, and open a pull request" },
  "keep-commits": { type: "flag", summary: "With --branch: replay commits made inside instead of making one" },
  "co-author": { type: "text", value: "NAME", summary: "With --branch: 'Name <address>' for the co-author trailer" },
} as const satisfies OptionDeclarations;

const options = {
  "dry-run": { type: "flag", short: "n", summary: "Only show what would be written and deleted" },
  to: { type: "text", value: "STAGE", summary: "Go as far as this stage; the first that writes into the folder if left out" },
  only: { type: "list", value: "PATH", completes: "path", summary: "Only this path and what is below it; may be given several times" },
  include: { type: "list", value: "PATH", completes: "path", summary: "Promote this path, too, although git ignores it" },
  message: { type: "text", short: "m", value: "TEXT", summary: "What the change is for" },
  check: { type: "list", short: "c", value: "COMMAND", summary: "Must pass, instead of the checks of the experiment or the config" },
  setup: { type: "text", value: "COMMAND", summary: "Prepares a fresh clone before its checks, such as `npm ci`" },
  hash: { type: "text", value: "HASH", summary: "Refuse if the plan is not the one that --dry-run showed with this hash" },
  "allow-risky": { type: "flag", summary: "Accept everything risky that the plan lists" },
  approve: { type: "flag", summary: "Approve what a promotion waits for, as `viv approve` does" },
  discard: { type: "flag", summary: "Withdraw a promotion that waits; nothing of it is applied" },
  branch: {
    type: "flag",
    short: "b",
    summary: "Make a branch with one commit instead of writing into the folder; the checkout stays as it is",
  },
  ...BRANCH_OPTIONS,
} as const satisfies OptionDeclarations;
type Options = Invocation<typeof options>["options"];

function branchInput(chosen: Options): Pick<InputOf<"promote">, "branch"> {
  const given = Object.keys(BRANCH_OPTIONS).filter((name) => {
    const value = chosen[name as keyof typeof BRANCH_OPTIONS];
    return value !== undefined && value !== false;
  });
  if (!chosen.branch) {
    if (given.length > 0)
      throw usageError(
        `--${given[0] ?? ""} goes with --branch.`,
        `Add --branch; without --${given[0] ?? ""} the files are written into the folder.`,
      );
    return {};
  }
  const kind = KINDS.find((each) => each === chosen.kind);
  if (chosen.kind !== undefined && kind === undefined)
    throw usageError(`--kind takes ${KINDS.join(", ")}, not ${JSON.stringify(chosen.kind)}.`);
  return {
    branch: {
      ...(kind === undefined ? {} : { kind }),
      ...(chosen.ticket === undefined ? {} : { ticket: chosen.ticket }),
      ...(chosen["branch-name"] === undefined ? {} : { name: chosen["branch-name"] }),
      ...(chosen.push === undefined ? {} : { push: chosen.push }),
      ...(chosen.pr ? { pullRequest: true } : {}),
      ...(chosen["keep-commits"] ? { keepCommits: true } : {}),
      ...(chosen["co-author"] === undefined ? {} : { coAuthor: chosen["co-author"] }),
    },
  };
}

function sourceInput(source: Source, chosen: Options): InputOf<"planPromotion"> {
  return {
    ...(source.kind === "sandbox" ? { sandbox: source.id } : { experiment: source.id }),
    ...(chosen.only.length === 0 ? {} : { only: [...chosen.only] }),
    ...(chosen.include.length === 0 ? {} : { include: [...chosen.include] }),
  };
}

/** Lines that are given here run in the caller's folder, where that is in the project. */
async function folder(server: Client, source: Source, chosen: Options, cwd: string): Promise<Pick<InputOf<"promote">, "cwd">> {
  if (chosen.check.length === 0 && chosen.setup === undefined) return {};
  const { project } =
    source.kind === "sandbox"
      ? await server.call("findSandbox", { sandbox: source.id })
      : await server.call("inspectExperiment", { experiment: source.id });
  return isWithin(project, cwd) ? { cwd } : {};
}

function promoteInput(source: Source, chosen: Options, env: Invocation["env"]): InputOf<"promote"> {
  return {
    ...sourceInput(source, chosen),
    ...branchInput(chosen),
    ...(chosen.to === undefined ? {} : { to: chosen.to }),
    ...(chosen.message === undefined ? {} : { message: chosen.message }),
    ...(chosen.check.length === 0 ? {} : { checks: [...chosen.check] }),
    ...(chosen.setup === undefined ? {} : { setup: chosen.setup }),
    ...(chosen.hash === undefined ? {} : { hash: chosen.hash }),
    ...(chosen["allow-risky"] ? { allowRisky: true } : {}),
    env: definedOnly(env),
  };
}

/** What `viv promote PROMOTION` does: on from an approval, or to a later stage. */
function goOn(server: Client, promotion: string, chosen: Options, env: Invocation["env"]): () => Promise<Promotion> {
  if (!chosen.approve && !chosen.discard && chosen.to === undefined)
    throw usageError(
      "A promotion goes on with --approve or --to STAGE, and ends with --discard.",
      "`viv promotions` shows where each one stands.",
    );
  const own = new Set(chosen.discard ? ["discard"] : ["approve", "to"]);
  const other = Object.entries(chosen).find(
    ([name, value]) => !own.has(name) && value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0),
  );
  if (other !== undefined) throw usageError(`--${other[0]} is for a new promotion; this one has its plan already.`);
  if (chosen.discard) return () => server.call("discardPromotion", { promotion });
  const to = chosen.to === undefined ? {} : { to: chosen.to };
  const approval = chosen.approve ? { approve: true, approver: approverToken(env) } : {};
  return () => server.call("continuePromotion", { promotion, ...approval, ...to, env: definedOnly(env) });
}

async function showPlan(server: Client, source: Source, { options: chosen, json, screen }: Invocation<typeof options>): Promise<number> {
  const plan = await screen.during("Planning", server.call("planPromotion", sourceInput(source, chosen)));
  if (json) screen.json(plan);
  else {
    printPlan(screen, plan);
    if (plan.conflicts.length > 0) screen.say("\nWith conflicts nothing is promoted.");
    else if (plan.risks.length > 0) screen.say("\nLook at what is risky; --allow-risky accepts it.");
  }
  return plan.conflicts.length > 0 ? CONFLICT : 0;
}

async function run(invocation: Invocation<typeof options>): Promise<number> {
  const {
    options: chosen,
    positionals: [text = ""],
    json,
    screen,
    cwd,
    env,
    client,
  } = invocation;
  branchInput(chosen);
  const server = await client();
  const source = await findSource(server, text);
  if ((chosen.approve || chosen.discard) && source.kind !== "promotion")
    throw usageError(
      `--${chosen.approve ? "approve" : "discard"} is for a promotion that waits.`,
      "`viv promotions` shows them; --allow-risky accepts what is risky from the start.",
    );
  if (chosen["dry-run"] && source.kind !== "promotion") return showPlan(server, source, invocation);
  const call =
    source.kind === "promotion"
      ? goOn(server, source.id, chosen, env)
      : async () => server.call("promote", { ...promoteInput(source, chosen, env), ...(await folder(server, source, chosen, cwd)) });
  const isOurs = ({ id, sandbox, sandboxName, experiment }: Promotion): boolean =>
    [id, sandbox, sandboxName, experiment].includes(source.id);
  const promotion = await runPromotion({ client: server, screen, env }, call, isOurs).catch((error: unknown) => {
    throw explained(error);
  });
  if (json) screen.json(promotion);
  else printSettled(screen, promotion);
  return promotionExit(promotion);
}

/** After a broken connection the caller does not know whether the promotion was applied. */
function explained(error: unknown): unknown {
  if (!(error instanceof VivError) || error.code !== "server_unreachable") return error;
  return new VivError("server_unreachable", error.message, {
    cause: error,
    remedy: "The project is as before, or has the whole change: `viv promotions` says which.",
  });
}

export default command({
  name: "promote",
  summary: "Bring what a sandbox changed into the real project",
  details:
    "Takes a sandbox, or an experiment for its winner. The server merges the change with the project as it is now; if both changed the same lines, it writes nothing. It runs the checks first, then replaces all files together or none, and `viv undo` restores them. Files that other programs run, secrets and the like are risky: the plan lists them, and they need --allow-risky or an approval. What git ignores stays behind, but for --include. With the id of a promotion it goes on from an approval or to a later stage. The exit code is 0 when it is applied, 1 when a check failed, 3 on conflicts, 4 when it waits for an approval.",
  examples: [
    ["viv promote --dry-run try", "see what would be written"],
    ["viv promote try", "write it into the project"],
    ["viv promote exp1a2b3c", "the winner of an experiment; the beginning of its id is enough"],
    ["viv promote try --branch --kind fix --ticket T-12 -m 'Count from zero' --push origin --pr", "as a branch with a pull request"],
    ["viv promote prm4d5e6f --to staging", "on to a later stage; `viv approve` answers one that waits"],
    ["viv promote prm4d5e6f --discard", "take one back that waits"],
  ],
  options,
  positionals: [{ name: "SOURCE", summary: "A sandbox, an experiment, or a promotion that waits", completes: "source" }],
  run,
});
