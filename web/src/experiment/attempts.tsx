/** Attempts side by side as they run: checks, tests, diff, time, memory and cost, with the untouched clone below them. */
import type { ReactNode } from "react";
import type { Attempt, Experiment, Verdict } from "../../../src/base/schema/experiment.ts";
import { Failure, Section, useNow } from "../parts/parts.tsx";
import { State, StateShape } from "../parts/state.tsx";
import { bytes, dollars, duration } from "../parts/words.ts";
import { useAct, useAnswer } from "../server/queries.ts";
import { AttemptDetails } from "./attempt-details.tsx";
import { attemptLine, attemptTone, byRank, firstFailure, isOver, testWords, verdictWords } from "./attempt-words.ts";

/** How often the figures of an attempt that runs are asked for. */
const LIVE_MS = 3_000;
const COLUMNS = 8;

interface Figures {
  readonly added: number | null;
  readonly removed: number | null;
  readonly memoryBytes: number | null;
  readonly cost: number | null;
}

/** Of an attempt that ended, what was measured; of one that runs, how its sandbox and its run are now. */
function useFigures(attempt: Attempt): Figures {
  const runs = !isOver(attempt) && attempt.sandbox !== null;
  const sandbox = attempt.sandbox ?? "";
  const diff = useAnswer(
    "diffSandbox",
    { sandbox, stat: true, promotable: true },
    { every: LIVE_MS, enabled: runs && attempt.diff === null },
  );
  const box = useAnswer("inspectSandbox", { sandbox }, { every: LIVE_MS, enabled: runs });
  const run = useAnswer("inspectRun", { run: attempt.run ?? "" }, { enabled: runs && typeof attempt.run === "string" });
  const sum = (side: "added" | "removed"): number | null =>
    attempt.diff?.[side] ?? diff.data?.entries.reduce((total, entry) => total + (entry[side] ?? 0), 0) ?? null;
  return {
    added: sum("added"),
    removed: sum("removed"),
    memoryBytes: attempt.peakMemoryBytes ?? box.data?.use.memoryBytes ?? null,
    cost: attempt.cost ?? (run.data === undefined || run.data.cost === 0 ? null : run.data.cost),
  };
}

function Took({ attempt }: { readonly attempt: Attempt }): ReactNode {
  const now = useNow();
  if (attempt.wallMs !== null) return duration(attempt.wallMs);
  return attempt.startedAt === null ? "–" : duration(now - Date.parse(attempt.startedAt));
}

function ChecksCell({ verdict }: { readonly verdict: Verdict | null }): ReactNode {
  const words = verdictWords(verdict);
  const failed = firstFailure(verdict);
  return (
    <td data-name="Checks" className="checks">
      {words === undefined ? <span className="muted">–</span> : <State tone={words.tone}>{words.text}</State>}
      {failed !== undefined && <code className="cut muted failed-check">{failed}</code>}
    </td>
  );
}

function Cells({ attempt }: { readonly attempt: Attempt }): ReactNode {
  const { added, removed, memoryBytes, cost } = useFigures(attempt);
  const verdict = attempt.verified ?? attempt.checked;
  return (
    <>
      <ChecksCell verdict={verdict} />
      <td data-name="Tests">{testWords(verdict) ?? "–"}</td>
      <td data-name="Diff" className="right">
        {added === null ? (
          <span className="muted">–</span>
        ) : (
          <>
            <span className="is-passed">+{added}</span> <span className="is-failed">−{removed}</span>
          </>
        )}
      </td>
      <td data-name="Time" className="right">
        <Took attempt={attempt} />
      </td>
      <td data-name="Memory" className="right">
        {memoryBytes === null ? "–" : bytes(memoryBytes)}
      </td>
      <td data-name="Cost" className="right">
        {cost === null ? "–" : dollars(cost)}
      </td>
    </>
  );
}

function AttemptRows({
  experiment,
  attempt,
  open,
  onOpen,
}: {
  readonly experiment: Experiment;
  readonly attempt: Attempt;
  readonly open: boolean;
  readonly onOpen: (open: boolean) => void;
}): ReactNode {
  const pick = useAct("pickWinner");
  const won = experiment.winner === attempt.index;
  const mayPick = attempt.state === "done" && !won && experiment.state !== "running";
  return (
    <>
      <tr className={won ? "won" : ""}>
        <td className="who">
          <button type="button" className="button plain" data-row aria-expanded={open} onClick={() => onOpen(!open)}>
            <StateShape tone={attemptTone(experiment, attempt)} />
            <span className="strong cut">{attempt.name}</span>
            <span className="twist" aria-hidden="true">
              {open ? "▾" : "▸"}
            </span>
          </button>
          <span className="small muted says" title={attempt.reason ?? undefined}>
            {attemptLine(experiment, attempt)}
          </span>
        </td>
        <Cells attempt={attempt} />
        <td className="right acts">
          {mayPick && (
            <button
              type="button"
              className="button small"
              disabled={pick.isPending}
              title={`viv experiment ${experiment.id} pick ${attempt.name}`}
              aria-label={`Pick ${attempt.name} as the winner`}
              onClick={() => pick.mutate({ experiment: experiment.id, attempt: attempt.index })}
            >
              Pick
            </button>
          )}
        </td>
      </tr>
      {(open || pick.error !== null) && (
        <tr className="more">
          <td colSpan={COLUMNS}>
            {pick.error !== null && <Failure error={pick.error} />}
            {open && <AttemptDetails attempt={attempt} />}
          </td>
        </tr>
      )}
    </>
  );
}

/** The same checks on the clone that no attempt has touched: what there was to gain. */
function BaselineRow({ verdict }: { readonly verdict: Verdict }): ReactNode {
  return (
    <tr className="baseline">
      <td className="who">
        <span className="muted">before</span>
        <span className="small muted says">the untouched clone</span>
      </td>
      <ChecksCell verdict={verdict} />
      <td data-name="Tests">{testWords(verdict) ?? "–"}</td>
      <td colSpan={COLUMNS - 3} className="rest" />
    </tr>
  );
}

export function Attempts({
  experiment,
  opened,
  onOpen,
}: {
  readonly experiment: Experiment;
  readonly opened: string | null;
  readonly onOpen: (name: string | null) => void;
}): ReactNode {
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
            {byRank(experiment).map((attempt) => (
              <AttemptRows
                key={attempt.index}
                experiment={experiment}
                attempt={attempt}
                open={opened === attempt.name}
                onOpen={(open) => onOpen(open ? attempt.name : null)}
              />
            ))}
            {experiment.baseline !== null && <BaselineRow verdict={experiment.baseline} />}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
