/** Runs, experiments, promotions, questions and sandboxes as rows of lists: each leads to its page. */
import type { ReactNode } from "react";
import type { Experiment } from "../../../src/base/schema/experiment.ts";
import type { Promotion } from "../../../src/base/schema/promotion.ts";
import type { Question } from "../../../src/base/schema/question.ts";
import type { Run } from "../../../src/base/schema/run.ts";
import type { Sandbox } from "../../../src/base/schema/sandbox.ts";
import { Link } from "../app/router.tsx";
import { activityWords } from "./activity.ts";
import { Ago, useNow } from "./parts.tsx";
import { StateShape, toneOf, type Tone } from "./state.tsx";
import { baseName, dollars, duration, firstLine, plural } from "./words.ts";

export function Row({
  to,
  tone,
  word,
  title,
  under,
  end,
  acts,
}: {
  readonly to: string;
  readonly tone: Tone;
  readonly word: string;
  readonly title: ReactNode;
  readonly under: ReactNode;
  readonly end: ReactNode;
  /** Buttons beside it. */
  readonly acts?: ReactNode;
}): ReactNode {
  return (
    <li>
      <Link to={to} className="item">
        <span title={word}>
          <StateShape tone={tone} />
          <span className="sr-only">{word}</span>
        </span>
        <span className="stack" style={{ gap: 0 }}>
          <span className="cut">{title}</span>
          <span className="cut under">{under}</span>
        </span>
        <span className="end">{end}</span>
      </Link>
      {acts}
    </li>
  );
}

/** Whether all that it may spend is spent: no model answers it any more. */
export function isOverBudget({ budget, cost, outcome }: Run): boolean {
  return budget !== null && cost >= budget && outcome !== "done";
}

/** What a run does now, or how it ended, in words. */
export function runWords(run: Run): { tone: Tone; text: string } {
  if (isOverBudget(run)) return { tone: run.outcome === null ? "waiting" : "failed", text: `over budget (${run.outcome ?? run.state})` };
  if (run.outcome !== null) return { tone: toneOf(run.state, run.outcome), text: run.outcome };
  if (run.activity === "person" || run.activity === "rate_limit") return { tone: "waiting", text: activityWords(run) };
  if (run.health === "degraded") return { tone: "waiting", text: "no heartbeat" };
  return { tone: toneOf(run.state), text: run.state === "running" ? activityWords(run) : run.state };
}

function Running({ since }: { readonly since: string }): ReactNode {
  return <span className="number">{duration(useNow() - Date.parse(since))}</span>;
}

export function RunRow({ run }: { readonly run: Run }): ReactNode {
  const { tone, text } = runWords(run);
  const more = [
    run.agent,
    baseName(run.project),
    plural(run.steps, "step"),
    run.cost > 0 ? `${dollars(run.cost)}${isOverBudget(run) ? ` of ${dollars(run.budget ?? 0)}` : ""}` : undefined,
    run.reason ?? undefined,
  ];
  return (
    <Row
      to={`/run/${run.id}`}
      tone={tone}
      word={text}
      title={firstLine(run.task)}
      under={`${text} · ${more.filter((part) => part !== undefined).join(" · ")}`}
      end={run.endedAt === null ? <Running since={run.startedAt ?? run.createdAt} /> : <Ago at={run.endedAt} />}
    />
  );
}

export function experimentWords(experiment: Experiment): { tone: Tone; text: string } {
  const { state, winner, attempts } = experiment;
  if (state === "choosing") return { tone: "waiting", text: "you choose the winner" };
  if (state === "done")
    return winner === null
      ? { tone: "failed", text: "no winner" }
      : { tone: "passed", text: attempts.length === 1 ? "passed" : `${attempts[winner - 1]?.name ?? winner} won` };
  if (state === "running")
    return { tone: "running", text: `${attempts.filter((one) => one.endedAt !== null).length} of ${attempts.length} ended` };
  return { tone: toneOf(state), text: state };
}

/** The project and what was tried in it. */
export function experimentTitle({ project, attempts }: Experiment): string {
  const names = attempts.map(({ name }) => name);
  const shown = names.length > 4 ? [...names.slice(0, 3), `${names.length - 3} more`] : names;
  return attempts.length === 1
    ? `${baseName(project)}: ${firstLine(attempts[0]?.command ?? "")}`
    : `${baseName(project)}: ${shown.join(", ")}`;
}

export function ExperimentRow({ experiment }: { readonly experiment: Experiment }): ReactNode {
  const { tone, text } = experimentWords(experiment);
  return (
    <Row
      to={`/experiment/${experiment.id}`}
      tone={tone}
      word={text}
      title={experimentTitle(experiment)}
      under={[text, plural(experiment.attempts.length, "attempt"), experiment.reason ?? undefined]
        .filter((part) => part !== undefined)
        .join(" · ")}
      end={experiment.endedAt === null ? <Running since={experiment.createdAt} /> : <Ago at={experiment.endedAt} />}
    />
  );
}

export function promotionTitle(promotion: Promotion): string {
  const files = promotion.plan === null ? "" : ` ${plural(promotion.plan.files, "file")}`;
  const from = promotion.sandboxName === null ? "" : ` from ${promotion.sandboxName}`;
  return promotion.kind === "undo"
    ? `Took back${files}`
    : `${promotion.message === null ? `Promoted${files}` : firstLine(promotion.message)}${from}`;
}

export function PromotionRow({ promotion }: { readonly promotion: Promotion }): ReactNode {
  const { state, id, project, createdAt, endedAt, reason } = promotion;
  return (
    <Row
      to={`/review/${id}`}
      tone={toneOf(state)}
      word={state}
      title={promotionTitle(promotion)}
      under={[state, project, reason ?? undefined].filter((part) => part !== undefined).join(" · ")}
      end={<Ago at={endedAt ?? createdAt} />}
    />
  );
}

const ASKS: Readonly<Record<Question["kind"], string>> = {
  command: "wants to run",
  tool: "wants to use",
  path: "wants to touch",
  host: "wants to reach",
  effect: "wants to send",
  promotion: "wants into reality",
  resources: "wants more",
  secret: "wants a secret",
  private: "wants a private address",
  run: "asks about a run",
};

export function askWords(question: Question): string {
  return `${question.sandboxName ?? "This machine"} ${ASKS[question.kind]}`;
}

export function QuestionRow({ question }: { readonly question: Question }): ReactNode {
  const now = useNow();
  const left = question.deadline === null ? undefined : Date.parse(question.deadline) - now;
  const waits = question.state === "waiting";
  return (
    <Row
      to={`/question/${question.id}`}
      tone={waits ? "waiting" : toneOf(question.state)}
      word={question.state}
      title={<code>{firstLine(question.target)}</code>}
      under={`${askWords(question)} · ${question.reason}`}
      end={
        waits && left !== undefined ? (
          <span className="is-waiting">{left > 0 ? `${duration(left)} left` : "too late"}</span>
        ) : (
          <Ago at={question.askedAt} />
        )
      }
    />
  );
}

export function SandboxRow({ sandbox }: { readonly sandbox: Sandbox }): ReactNode {
  const { name, state, outcome, project, uses, reason, endedAt, createdAt } = sandbox;
  return (
    <Row
      to={`/sandbox/${name}`}
      tone={toneOf(state, outcome)}
      word={outcome ?? state}
      title={name}
      under={[outcome ?? state, project, uses.length > 0 ? uses.join(", ") : undefined, reason ?? undefined]
        .filter((part) => part !== undefined)
        .join(" · ")}
      end={<Ago at={endedAt ?? createdAt} />}
    />
  );
}
