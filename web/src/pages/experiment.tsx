/** Several approaches to one task: attempts side by side, the verdict with its reason, and on the same screen promote, undo and pick. */
import { useState, type ReactNode } from "react";
import type { Attempt, Experiment, Verdict } from "../../../src/base/schema/experiment.ts";
import type { PageProps } from "../app/pages.tsx";
import { Link } from "../app/router.tsx";
import { Ago, Answered, Command, Failure, Section, Title, useNow } from "../parts/parts.tsx";
import { PromotionCard } from "../parts/promotion-card.tsx";
import { experimentWords } from "../parts/rows.tsx";
import { State, StateShape, toneOf, type Tone } from "../parts/state.tsx";
import { baseName, bytes, dollars, duration, plural } from "../parts/words.ts";
import { useAct, useAnswer } from "../server/queries.ts";
import "../style/experiment.css";

function verdictWords(verdict: Verdict | null): { tone: Tone; text: string } | undefined {
  if (verdict === null) return undefined;
  const passed = verdict.checks.filter((check) => check.passed).length;
  return { tone: verdict.passed ? "passed" : "failed", text: `${passed} of ${plural(verdict.checks.length, "check")}` };
}

function testsOf(verdict: Verdict | null): string {
  const tests = (verdict?.checks ?? []).flatMap((check) => (check.tests === null ? [] : [check.tests]));
  if (tests.length === 0) return "–";
  const sum = (pick: (one: (typeof tests)[number]) => number): number => tests.reduce((total, one) => total + pick(one), 0);
  const failed = sum((one) => one.failed);
  return failed === 0 ? `${sum((one) => one.passed)} pass` : `${failed} fail, ${sum((one) => one.passed)} pass`;
}

function Checks({ title, verdict }: { readonly title: string; readonly verdict: Verdict }): ReactNode {
  return (
    <div className="stack">
      <h3>{title}</h3>
      {[...(verdict.setup === null ? [] : [verdict.setup]), ...verdict.checks].map((check, index) => (
        <details key={`${check.command} ${index}`} className="call">
          <summary>
            <StateShape tone={check.passed ? "passed" : "failed"} />
            <span className="sr-only">{check.passed ? "passed" : "failed"}</span>
            <code className="cut grow">{check.command}</code>
            {check.flaky && <span className="is-waiting small">flaky</span>}
            <span className="muted small number">{duration(check.wallMs)}</span>
          </summary>
          <div className="inside">
            {check.cause !== null && <p className="small">{check.cause}</p>}
            <pre className="block" tabIndex={0}>
              {check.output === "" ? "(no output)" : check.output}
            </pre>
          </div>
        </details>
      ))}
    </div>
  );
}

function Details({ attempt }: { readonly attempt: Attempt }): ReactNode {
  return (
    <div className="stack details">
      <div>
        <h3>What it does</h3>
        <pre className="block" tabIndex={0}>
          {attempt.command}
        </pre>
      </div>
      {attempt.flags.length > 0 && (
        <ul className="stack">
          {attempt.flags.map((flag) => (
            <li key={flag} className="notice is-waiting wrap">
              {flag}
            </li>
          ))}
        </ul>
      )}
      {attempt.checked !== null && <Checks title="Checks in the state it left" verdict={attempt.checked} />}
      {attempt.verified !== null && <Checks title="Checks on its change alone, in a fresh clone" verdict={attempt.verified} />}
      {attempt.output !== "" && (
        <details className="call">
          <summary>
            <span className="muted">The end of its output</span>
          </summary>
          <pre className="block inside" tabIndex={0}>
            {attempt.output}
          </pre>
        </details>
      )}
      {attempt.sideChanges.length > 0 && <p className="small muted wrap">Not promoted: {attempt.sideChanges.join(", ")}</p>}
      {attempt.protectedChanged.length > 0 && (
        <p className="small wrap">
          It edited protected files, and was judged with the original ones: {attempt.protectedChanged.join(", ")}
        </p>
      )}
      {attempt.needs.length > 0 && <p className="small wrap">It needs: {attempt.needs.join(", ")}</p>}
      <div className="row wraps">
        {attempt.run !== undefined && attempt.run !== null && (
          <Link className="button small" to={`/run/${attempt.run}`}>
            Conversation
          </Link>
        )}
        {attempt.sandbox !== null && (
          <>
            <Link className="button small" to={`/review/${attempt.sandbox}`}>
              Review the diff
            </Link>
            <Link className="button small" to={`/sandbox/${attempt.sandbox}`}>
              Sandbox
            </Link>
          </>
        )}
      </div>
    </div>
  );
}

function Took({ attempt }: { readonly attempt: Attempt }): ReactNode {
  const now = useNow();
  if (attempt.wallMs !== null) return duration(attempt.wallMs);
  return attempt.startedAt === null ? "–" : duration(now - Date.parse(attempt.startedAt));
}

function Cells({ attempt }: { readonly attempt: Attempt }): ReactNode {
  const checks = verdictWords(attempt.verified ?? attempt.checked);
  return (
    <>
      <td data-name="Checks">
        {checks === undefined ? <span className="muted">–</span> : <State tone={checks.tone}>{checks.text}</State>}
      </td>
      <td data-name="Tests">{testsOf(attempt.verified ?? attempt.checked)}</td>
      <td data-name="Diff" className="right">
        {attempt.diff === null ? (
          <span className="muted">–</span>
        ) : (
          <>
            <span className="is-passed">+{attempt.diff.added}</span> <span className="is-failed">−{attempt.diff.removed}</span>
          </>
        )}
      </td>
      <td data-name="Time" className="right">
        <Took attempt={attempt} />
      </td>
      <td data-name="Memory" className="right">
        {attempt.peakMemoryBytes === null ? "–" : bytes(attempt.peakMemoryBytes)}
      </td>
      <td data-name="Cost" className="right">
        {attempt.cost === null ? "–" : dollars(attempt.cost)}
      </td>
    </>
  );
}

function AttemptRows({ experiment, attempt }: { readonly experiment: Experiment; readonly attempt: Attempt }): ReactNode {
  const [open, setOpen] = useState(experiment.attempts.length === 1);
  const pick = useAct("pickWinner");
  const won = experiment.winner === attempt.index;
  const mayPick = attempt.state === "done" && !won && experiment.state !== "running";
  return (
    <>
      <tr className={won ? "won" : ""}>
        <td className="who">
          <button type="button" className="button plain" aria-expanded={open} onClick={() => setOpen(!open)}>
            <StateShape tone={won ? "passed" : attempt.state === "done" ? "stopped" : toneOf(attempt.state)} />
            <span className="strong cut">{attempt.name}</span>
          </button>
          <span className="small muted cut">
            {won ? "winner" : attempt.state}
            {attempt.rank === null ? "" : ` · place ${attempt.rank}`}
            {attempt.reason === null ? "" : ` · ${attempt.reason}`}
          </span>
        </td>
        <Cells attempt={attempt} />
        <td className="right">
          {mayPick && (
            <button
              type="button"
              className="button small"
              disabled={pick.isPending}
              title={`viv experiment ${experiment.id} pick ${attempt.name}`}
              onClick={() => pick.mutate({ experiment: experiment.id, attempt: attempt.index })}
            >
              Pick
            </button>
          )}
        </td>
      </tr>
      {(open || pick.error !== null) && (
        <tr className="more">
          <td colSpan={8}>
            {pick.error !== null && <Failure error={pick.error} />}
            {open && <Details attempt={attempt} />}
          </td>
        </tr>
      )}
    </>
  );
}

function Attempts({ experiment }: { readonly experiment: Experiment }): ReactNode {
  const ranked = experiment.attempts.toSorted(
    (one, other) => (one.rank ?? Number.MAX_SAFE_INTEGER) - (other.rank ?? Number.MAX_SAFE_INTEGER) || one.index - other.index,
  );
  return (
    <Section title="Attempts" count={experiment.attempts.length}>
      <div className="card scroll-x">
        <table className="attempts">
          <thead>
            <tr>
              <th>Attempt</th>
              <th>Checks</th>
              <th>Tests</th>
              <th className="right">Diff</th>
              <th className="right">Time</th>
              <th className="right">Memory</th>
              <th className="right">Cost</th>
              <th>
                <span className="sr-only">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {ranked.map((attempt) => (
              <AttemptRows key={attempt.index} experiment={experiment} attempt={attempt} />
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function VerdictCard({ experiment }: { readonly experiment: Experiment }): ReactNode {
  const cancel = useAct("cancelExperiment");
  const retry = useAct("retryExperiment");
  const { tone, text } = experimentWords(experiment);
  const over = experiment.endedAt !== null;
  const baseline = verdictWords(experiment.baseline);
  return (
    <Section title="Verdict">
      {(cancel.error ?? retry.error) !== null && <Failure error={cancel.error ?? retry.error} />}
      <div className="card">
        <div className="body stack">
          <div className="row wraps">
            <State tone={tone}>{text}</State>
            <span className="grow wrap">
              {experiment.reason ??
                (experiment.state === "choosing"
                  ? "The checks are done. Pick the attempt that you want."
                  : "The verdict comes when the attempts have ended.")}
            </span>
          </div>
          <dl className="facts small">
            <dt>Judged by</dt>
            <dd>{experiment.checks.length === 0 ? "no check" : experiment.checks.map((check) => <code key={check}>{check} </code>)}</dd>
            <dt>Better is</dt>
            <dd>{experiment.rules.join(", then ")}</dd>
            <dt>Before</dt>
            <dd>{baseline === undefined ? "not known yet" : `${baseline.text} passed on the untouched clone`}</dd>
          </dl>
          <div className="row wraps">
            {over ? (
              <>
                <button
                  type="button"
                  className="button small"
                  disabled={retry.isPending}
                  onClick={() => retry.mutate({ experiment: experiment.id, all: true })}
                >
                  Try all again
                </button>
                <Command line={`viv experiment ${experiment.id} retry --all`} />
              </>
            ) : (
              <>
                <button
                  type="button"
                  className="button small"
                  disabled={cancel.isPending}
                  onClick={() => cancel.mutate({ experiment: experiment.id })}
                >
                  Cancel
                </button>
                <Command line={`viv experiment ${experiment.id} cancel`} />
              </>
            )}
          </div>
        </div>
      </div>
    </Section>
  );
}

function One({ experiment }: { readonly experiment: Experiment }): ReactNode {
  const { tone, text } = experimentWords(experiment);
  return (
    <>
      <Title
        crumbs={[{ to: "/work?show=experiments", text: "Experiments" }]}
        title={`${baseName(experiment.project)}: ${plural(experiment.attempts.length, "attempt")}`}
        tab={`${text}: ${baseName(experiment.project)}`}
        state={<State tone={tone}>{text}</State>}
      >
        <div className="row wraps small muted">
          <code>{experiment.project}</code>
          <Ago at={experiment.createdAt} />
          <Command line={`viv experiment ${experiment.id}`} />
        </div>
      </Title>
      <Attempts experiment={experiment} />
      <div className="halves">
        <VerdictCard experiment={experiment} />
        <PromotionCard source={{ experiment: experiment.id }} ready={experiment.winner !== null} line={`viv promote ${experiment.id}`} />
      </div>
    </>
  );
}

export default function ExperimentPage({ parts: [id = ""] }: PageProps): ReactNode {
  const query = useAnswer("inspectExperiment", { experiment: id });
  return (
    <main className="page">
      <Answered query={query} what="the experiment">
        {(experiment) => <One experiment={experiment} />}
      </Answered>
    </main>
  );
}
