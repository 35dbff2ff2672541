/** The parts of a firing's page: what was seen, what was decided, what was tried, and what reality said. */
import type { ReactNode } from "react";
import type { Firing } from "../../../src/base/schema/automation.ts";
import { AUTHORITY_TEXT } from "../../../src/base/schema/automation-words.ts";
import type { Attempt, Experiment } from "../../../src/base/schema/experiment.ts";
import { Link } from "../app/router.tsx";
import { attemptLine, attemptTone, byRank, firstFailure, verdictWords } from "../experiment/attempt-words.ts";
import { Answered, Command, Empty, Section } from "../parts/parts.tsx";
import { Row } from "../parts/rows.tsx";
import { StateShape } from "../parts/state.tsx";
import { clock, dollars, duration, firstLine, plural } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";
import { wayWords } from "./actions.tsx";
import { firingTone, stepWord } from "./words.ts";

/** Texts of files, logs and callers: data, shown as text. */
export function Seen({ firing: { seen, count, kind } }: { readonly firing: Firing }): ReactNode {
  return (
    <Section title="What was seen" count={count}>
      <div className="card body stack">
        {seen.map(({ at, text }, index) => (
          <div key={`${at} ${index}`} className="seen">
            <time dateTime={at} className="muted small number">
              {clock(at)}
            </time>
            <pre className="wrap">{text === "" ? "(nothing in it)" : text}</pre>
          </div>
        ))}
        {count > seen.length && <p className="muted small">and {plural(count - seen.length, "more trigger")} of the kind</p>}
        <p className="muted small">Trigger: {kind}. Triggers that came before it began are part of it.</p>
      </div>
    </Section>
  );
}

/** Why it has not begun. What more may belong to it is waited for until a time that is known from its beginning. */
function notBegun({ reason, notBefore }: Firing): string {
  if (reason !== null) return reason;
  return notBefore === null ? "It begins in a moment." : `More may come that belongs to it: it begins at ${clock(notBefore)}.`;
}

export function Decided({ firing }: { readonly firing: Firing }): ReactNode {
  const { triage, authority, reason, state } = firing;
  return (
    <Section title="What was decided">
      <div className="card body stack">
        {triage === null ? (
          <p className="wrap">{state === "seen" ? `Nothing yet. ${notBegun(firing)}` : (reason ?? "Nothing was decided.")}</p>
        ) : (
          <>
            <p>
              <span className="strong">{wayWords(triage.way)}.</span> <span className="wrap">{triage.reason}</span>
            </p>
            {authority !== null && (
              <p className="small muted">
                It had the authority to <code>{authority}</code>: it {AUTHORITY_TEXT[authority]}.
              </p>
            )}
          </>
        )}
      </div>
    </Section>
  );
}

function AttemptRow({ experiment, attempt }: { readonly experiment: Experiment; readonly attempt: Attempt }): ReactNode {
  const verdict = attempt.verified ?? attempt.checked;
  const words = verdictWords(verdict);
  const failed = firstFailure(verdict);
  const more = [
    attemptLine(experiment, attempt),
    words?.text,
    failed === undefined ? undefined : `\`${failed}\` fails`,
    attempt.diff === null ? undefined : plural(attempt.diff.files, "file"),
    (attempt.cost ?? 0) > 0 ? dollars(attempt.cost ?? 0) : undefined,
  ];
  return (
    <Row
      to={attempt.run === null ? `/experiment/${experiment.id}?attempt=${encodeURIComponent(attempt.name)}` : `/run/${attempt.run}`}
      tone={attemptTone(experiment, attempt)}
      word={attempt.state}
      title={<code>{firstLine(attempt.command ?? attempt.name)}</code>}
      under={more.filter((part) => part !== undefined).join(" · ")}
      end={attempt.wallMs === null ? "" : duration(attempt.wallMs)}
    />
  );
}

/** The attempts with their verdict; the experiment has the rest. */
export function Tried({ firing: { experiment, output, triage, endedAt } }: { readonly firing: Firing }): ReactNode {
  const query = useAnswer("inspectExperiment", { experiment: experiment ?? "" }, { enabled: experiment !== null });
  if (triage?.way === "direct" || output !== null)
    return (
      <Section title="What it saw in reality">
        <pre className="block">{output === null ? "It has not looked yet." : output === "" ? "(it printed nothing)" : output}</pre>
      </Section>
    );
  if (experiment === null)
    return (
      <Section title="What was tried">
        <div className="card">
          <Empty>{endedAt === null ? "Nothing was tried yet." : "Nothing was tried."}</Empty>
        </div>
      </Section>
    );
  return (
    <Section title="What was tried" aside={<Command line={`viv experiment ${experiment}`} />}>
      <div className="card">
        <Answered query={query} what="the attempts">
          {(one) => (
            <>
              <ul className="list">
                {byRank(one).map((attempt) => (
                  <AttemptRow key={attempt.index} experiment={one} attempt={attempt} />
                ))}
              </ul>
              <div className="body verdict-line">
                <p className="wrap">
                  {one.reason ?? (one.endedAt === null ? "The verdict comes when the attempts have ended." : "No verdict.")}
                </p>
                <Link to={`/experiment/${one.id}`} className="link small">
                  The whole experiment
                </Link>
              </div>
            </>
          )}
        </Answered>
      </div>
    </Section>
  );
}

/** Each check of reality before the promotion and after it. */
export function Reality({ firing: { before, after } }: { readonly firing: Firing }): ReactNode {
  if (after.length === 0) return null;
  const was = new Map(before.map((check) => [check.command, check.passed]));
  return (
    <Section title="Reality before and after">
      <div className="card">
        <ul className="list">
          {after.map(({ command, passed, exitCode, output }) => (
            <li key={command} className="reality">
              <StateShape tone={passed ? "passed" : "failed"} />
              <span className="stack">
                <code className="wrap">{command}</code>
                <span className="small muted">
                  {was.has(command) ? `${was.get(command) === true ? "passed" : "failed"} before, ` : ""}
                  {passed ? "passes now" : `ended with ${exitCode} after it`}
                </span>
                {!passed && output !== "" && <pre className="block">{output}</pre>}
              </span>
            </li>
          ))}
        </ul>
      </div>
    </Section>
  );
}

export function Way({ firing: { steps } }: { readonly firing: Firing }): ReactNode {
  return (
    <Section title="Its way">
      <div className="card">
        <ol className="list way">
          {steps.map(({ at, state, reason }) => (
            <li key={`${at} ${state}`}>
              <time dateTime={at} className="muted small number">
                {clock(at)}
              </time>
              <StateShape tone={firingTone(state)} />
              <span className="wrap">
                {stepWord(state)}
                {reason !== null && <span className="muted">: {reason}</span>}
              </span>
            </li>
          ))}
        </ol>
      </div>
    </Section>
  );
}
