/** The first page: what waits for you, what runs, and what changed in reality today. */
import type { ReactNode } from "react";
import type { Automation } from "../../../src/base/schema/automation.ts";
import type { Experiment } from "../../../src/base/schema/experiment.ts";
import type { Promotion } from "../../../src/base/schema/promotion.ts";
import type { Question } from "../../../src/base/schema/question.ts";
import type { Run } from "../../../src/base/schema/run.ts";
import type { SandboxStatus } from "../../../src/base/schema/files.ts";
import type { Sandbox } from "../../../src/base/schema/sandbox.ts";
import { Link } from "../app/router.tsx";
import { AutomationRow } from "../automation/rows.tsx";
import { AllAnswered, Empty, Section, Title } from "../parts/parts.tsx";
import { ExperimentRow, isOverBudget, PromotionRow, QuestionRow, RunRow, SandboxRow } from "../parts/rows.tsx";
import { BehindRow, inBoth, useBehind } from "../parts/standing.tsx";
import { plural } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";

const FAILED_HOURS = 12;
const LOOK_MS = 5_000;

interface Everything {
  readonly questions: readonly Question[];
  readonly runs: readonly Run[];
  readonly experiments: readonly Experiment[];
  readonly promotions: readonly Promotion[];
  readonly automations: readonly Automation[];
  readonly sandboxes: readonly Sandbox[];
}

function isToday(iso: string): boolean {
  return new Date(iso).toDateString() === new Date().toDateString();
}

function isLate(iso: string): boolean {
  return Date.now() - Date.parse(iso) < FAILED_HOURS * 3_600_000;
}

/** A task of one agent is shown as its run, and one of several attempts as their experiment. */
function once(
  runs: readonly Run[],
  experiments: readonly Experiment[],
): { shownRuns: readonly Run[]; shownExperiments: readonly Experiment[] } {
  const isTask = ({ attempts }: Experiment): boolean => attempts.length === 1 && typeof attempts[0]?.run === "string";
  const several = new Set(experiments.filter((one) => !isTask(one)).map(({ id }) => id));
  return {
    shownRuns: runs.filter(({ experiment }) => experiment === null || !several.has(experiment)),
    shownExperiments: experiments.filter((one) => !isTask(one)),
  };
}

/** Ended without a change that could be kept. */
function cameToNothing({ state, winner, endedAt }: Experiment): boolean {
  return endedAt !== null && isLate(endedAt) && (state === "failed" || (state === "done" && winner === null));
}

/** What a person should look at, the most urgent first. */
function needs({ questions, runs, experiments, promotions, automations }: Everything, behind: readonly SandboxStatus[]): ReactNode[] {
  const conflicting = behind.filter((one) => inBoth(one).length > 0);
  const stale = behind.filter((one) => inBoth(one).length === 0);
  return [
    ...questions.map((one) => <QuestionRow key={one.id} question={one} />),
    ...experiments.filter(({ state }) => state === "choosing").map((one) => <ExperimentRow key={one.id} experiment={one} />),
    ...runs
      .filter((run) =>
        run.endedAt === null
          ? run.activity === "person" || run.health === "degraded" || isOverBudget(run)
          : run.outcome !== "done" && run.outcome !== "cancelled" && isLate(run.endedAt),
      )
      .map((run) => <RunRow key={run.id} run={run} />),
    ...experiments.filter(cameToNothing).map((one) => <ExperimentRow key={one.id} experiment={one} />),
    ...promotions
      .filter((one) => one.pending || (one.state === "failed" && isLate(one.endedAt ?? one.createdAt)))
      .map((one) => <PromotionRow key={one.id} promotion={one} />),
    ...automations
      .filter(({ state }) => state === "muted" || state === "broken")
      .map((one) => <AutomationRow key={one.id} automation={one} />),
    ...[...conflicting, ...stale].map((one) => <BehindRow key={one.id} standing={one} />),
  ];
}

function NeedsYou(everything: Everything): ReactNode {
  const rows = needs(everything, useBehind(everything.sandboxes));
  return (
    <Section title="Needs you" count={rows.length}>
      <div className="card">{rows.length === 0 ? <Empty>Nothing waits for you.</Empty> : <ul className="list">{rows}</ul>}</div>
    </Section>
  );
}

function Runs({ runs, experiments, sandboxes }: Everything): ReactNode {
  const open = runs.filter((run) => run.endedAt === null);
  const trying = experiments.filter((one) => one.endedAt === null && one.state !== "choosing");
  const used = new Set([
    ...open.map(({ sandbox }) => sandbox),
    ...trying.flatMap(({ attempts }) => attempts.map(({ sandbox }) => sandbox)),
  ]);
  // Clones in which checks of an experiment run are that experiment's.
  const others = sandboxes.filter(
    ({ id, state, uses, labels }) => state === "running" && uses.length > 0 && !used.has(id) && labels["experiment"] === undefined,
  );
  const idle = sandboxes.filter(
    ({ id, state, uses }) => (state === "running" || state === "paused") && uses.length === 0 && !used.has(id),
  ).length;
  const count = open.length + trying.length + others.length;
  return (
    <Section
      title="Runs now"
      count={count}
      aside={
        idle > 0 && (
          <Link to="/work?show=sandboxes" className="small muted">
            {plural(idle, "idle sandbox", "idle sandboxes")}
          </Link>
        )
      }
    >
      <div className="card">
        {count === 0 ? (
          <Empty command="viv task 'fix the failing test'">Nothing runs. Give an agent a task:</Empty>
        ) : (
          <ul className="list">
            {trying.map((one) => (
              <ExperimentRow key={one.id} experiment={one} />
            ))}
            {open.map((run) => (
              <RunRow key={run.id} run={run} />
            ))}
            {others.map((box) => (
              <SandboxRow key={box.id} sandbox={box} />
            ))}
          </ul>
        )}
      </div>
    </Section>
  );
}

function Changed({ promotions, automations }: Everything): ReactNode {
  const today = promotions.filter((one) => ["applied", "undone"].includes(one.state) && isToday(one.endedAt ?? one.createdAt));
  return (
    <Section
      title="Changed in reality today"
      count={today.length}
      aside={
        automations.length > 0 && (
          <Link to="/report" className="small link">
            What automations did
          </Link>
        )
      }
    >
      <div className="card">
        {today.length === 0 ? (
          <Empty>Reality is as it was this morning: nothing was promoted today.</Empty>
        ) : (
          <ul className="list">
            {today.map((one) => (
              <PromotionRow key={one.id} promotion={one} />
            ))}
          </ul>
        )}
      </div>
    </Section>
  );
}

function Ended({ runs, experiments }: Everything): ReactNode {
  const ended = [
    ...runs.filter((run) => run.endedAt !== null).map((run) => ({ at: run.endedAt ?? "", row: <RunRow key={run.id} run={run} /> })),
    ...experiments
      .filter((one) => one.endedAt !== null)
      .map((one) => ({ at: one.endedAt ?? "", row: <ExperimentRow key={one.id} experiment={one} /> })),
  ];
  if (ended.length === 0) return null;
  return (
    <Section
      title="Ended lately"
      aside={
        <Link to="/work" className="small link">
          All work
        </Link>
      }
    >
      <div className="card">
        <ul className="list">
          {ended
            .toSorted((one, other) => (one.at > other.at ? -1 : 1))
            .slice(0, 6)
            .map(({ row }) => row)}
        </ul>
      </div>
    </Section>
  );
}

export default function Home(): ReactNode {
  const questions = useAnswer("listApprovals", {});
  // What a run spends is told by no event.
  const runs = useAnswer("listRuns", {}, { every: LOOK_MS });
  const experiments = useAnswer("listExperiments", {});
  const promotions = useAnswer("listPromotions", { all: true });
  const automations = useAnswer("listAutomations", {});
  const sandboxes = useAnswer("listSandboxes", {});
  const waiting = questions.data?.approvals.length ?? 0;
  return (
    <main className="page">
      <Title title="Home" tab={waiting > 0 ? `(${waiting}) Home` : "Home"} />
      <AllAnswered queries={[questions, runs, experiments, promotions, automations, sandboxes]} what="what happens here">
        {([asked, run, tried, promoted, automated, cloned]) => {
          const { shownRuns, shownExperiments } = once(run.runs, tried.experiments);
          const everything: Everything = {
            questions: asked.approvals,
            runs: shownRuns,
            experiments: shownExperiments,
            promotions: promoted.promotions,
            automations: automated.automations,
            sandboxes: cloned.sandboxes,
          };
          return (
            <>
              <NeedsYou {...everything} />
              <div className="halves">
                <Runs {...everything} />
                <Changed {...everything} />
              </div>
              <Ended {...everything} />
            </>
          );
        }}
      </AllAnswered>
    </main>
  );
}
