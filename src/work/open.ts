/** Opens what is done with sandboxes: checks, promotions, experiments and refreshes. What a server before left half done goes on. */
import { join } from "node:path";
import type { State } from "../base/open.ts";
import type { CellHost } from "../base/host/cell-host.ts";
import type { Closers } from "../base/host/closers.ts";
import { RepeatedTasks } from "../base/host/repeated-tasks.ts";
import { VivError } from "../base/schema/errors.ts";
import { LIMITS } from "../base/schema/limits.ts";
import type { Rules } from "../rules/open.ts";
import type { SandboxFloor } from "../sandbox/open.ts";
import { Clones } from "./checks/clones.ts";
import { Verification } from "./checks/verification.ts";
import { Experiments, type Winners } from "./experiments/experiments.ts";
import { Promotions, type PromotionParts } from "./promotion/promotions.ts";
import { Transactions } from "./promotion/transaction.ts";
import { SandboxRefresh, type CommonGround } from "./refresh/refresh.ts";

export interface Work {
  readonly experiments: Experiments;
  /** Absent where there is no cell. */
  readonly promotions: Promotions | undefined;
  readonly refresh: SandboxRefresh;
}

export async function openWork(
  state: State,
  { audit }: Rules,
  { parts, registry, sandboxes }: SandboxFloor,
  host: CellHost | undefined,
  closers: Closers,
): Promise<Work> {
  const { temporary } = state;
  const clones = new Clones(parts, sandboxes);
  const verification = new Verification(parts, sandboxes, clones);
  const promotions = await openPromotions(state, { parts, audit, registry, sandboxes, verification, temporary }, host, closers);
  const experiments = new Experiments({ parts, sandboxes, clones, verification, temporary }, winnersOf(promotions));
  closers.add(() => experiments.close());
  // Again, so that it is closed first: an experiment that ends waits for the promotion of its winner.
  closers.add(() => promotions?.close());
  const common: CommonGround = promotions?.common ?? (async (_store, _row, _snapshot, sides) => sides);
  const refresh = new SandboxRefresh({ parts, registry, sandboxes, common, temporary });
  await experiments.resume();
  return { experiments, promotions, refresh };
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
