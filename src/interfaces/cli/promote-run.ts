/** Carries a promotion out, showing its stages as they pass. */
import type { VivEvent } from "../../base/schema/event.ts";
import type { Promotion, StageResult } from "../../base/schema/promotion.ts";
import { follow } from "./follow.ts";
import { LiveLines } from "./live-lines.ts";
import { STAGE_MARKS, stageText } from "./promotion-view.ts";
import type { Screen } from "./screen.ts";
import type { WatchContext } from "./watch-experiment.ts";

const FAILED = 1;
const CONFLICT = 3;
const NEEDS_APPROVAL = 4;
const UNDER_WAY: ReadonlySet<Promotion["state"]> = new Set(["planning", "applying"]);

export function promotionExit({ state, plan, stages }: Promotion): number {
  if (state === "waiting" || (state === "applied" && stages.some((stage) => stage.state === "waiting"))) return NEEDS_APPROVAL;
  if (state !== "failed") return 0;
  return (plan?.conflicts.length ?? 0) > 0 ? CONFLICT : FAILED;
}

/** Stages drawn in place on a terminal, said once each elsewhere. */
class StageProgress {
  readonly #screen: Screen;
  readonly #lines: LiveLines;
  readonly #said = new Set<string>();
  #promotion: Promotion | undefined;

  constructor(screen: Screen) {
    this.#screen = screen;
    this.#lines = new LiveLines(screen, (frame) => this.#render(frame));
  }

  update(promotion: Promotion): void {
    this.#promotion = promotion;
    if (this.#screen.canvas !== undefined) return this.#lines.redraw();
    for (const stage of promotion.stages) {
      const text = stageText(stage);
      if (stage.state === "pending" || stage.state === "running" || stage.state === "not-set-up" || this.#said.has(text)) continue;
      this.#said.add(text);
      this.#screen.say(text);
    }
  }

  say(line: string): void {
    this.#lines.say(line);
  }

  /** Lines of stages that have begun stay on the screen. */
  end(): void {
    this.#lines.end({ keep: this.#begun.length > 0 });
  }

  /** Stages that have not begun are left out, because the promotion may end before them. */
  get #begun(): StageResult[] {
    return (this.#promotion?.stages ?? []).filter(({ state }) => state !== "not-set-up" && state !== "pending");
  }

  #render(frame: string): string[] {
    const begun = this.#begun;
    if (begun.length === 0) return this.#promotion === undefined || UNDER_WAY.has(this.#promotion.state) ? [`${frame} planning`] : [];
    return begun.map((stage) => {
      const [mark, colour] = STAGE_MARKS[stage.state];
      return `${this.#screen.paintRemark(colour, stage.state === "running" ? frame : mark)} ${stageText(stage)}`;
    });
  }
}

function idIn(event: VivEvent): string | undefined {
  const id = event.type.startsWith("promotion.") ? event.data["promotion"] : undefined;
  return typeof id === "string" ? id : undefined;
}

/** Runs a call that answers with a promotion, shows what happens meanwhile, and waits until it has settled. */
export async function runPromotion(
  around: WatchContext,
  call: () => Promise<Promotion>,
  isOurs: (promotion: Promotion) => boolean,
): Promise<Promotion> {
  const progress = new StageProgress(around.screen);
  const stop = new AbortController();
  try {
    const { newest } = await around.client.call("listEvents", { limit: 1 });
    const shown = showMeanwhile(around, newest, isOurs, progress, stop.signal);
    const first = await call().finally(() => stop.abort());
    await shown;
    return await follows(around, first, progress);
  } finally {
    progress.end();
  }
}

/** Waits until a promotion that was begun elsewhere has settled. */
export async function waitForPromotion(around: WatchContext, id: string): Promise<Promotion> {
  const progress = new StageProgress(around.screen);
  try {
    return await follows(around, await around.client.call("inspectPromotion", { promotion: id }), progress);
  } finally {
    progress.end();
  }
}

/** The call may last as long as the promotion: its stages come as events. Without the events only the drawing is missing. */
async function showMeanwhile(
  { client }: WatchContext,
  after: number,
  isOurs: (promotion: Promotion) => boolean,
  progress: StageProgress,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const event of client.events(after, { signal })) {
      const id = idIn(event);
      if (id === undefined) continue;
      const promotion = await client.call("inspectPromotion", { promotion: id }, signal);
      if (!signal.aborted && isOurs(promotion)) progress.update(promotion);
    }
  } catch {
    // The call itself reports what is wrong with the server.
  }
}

async function follows(around: WatchContext, first: Promotion, progress: StageProgress): Promise<Promotion> {
  let last = first;
  progress.update(first);
  if (!UNDER_WAY.has(first.state)) return first;
  const states = follow(
    { ...around, say: (line) => progress.say(line) },
    {
      look: () => around.client.call("inspectPromotion", { promotion: first.id }),
      concerns: (event) => idIn(event) === first.id,
      isOver: ({ state }) => !UNDER_WAY.has(state),
    },
  );
  for await (const state of states) {
    last = state;
    progress.update(state);
  }
  return last;
}
