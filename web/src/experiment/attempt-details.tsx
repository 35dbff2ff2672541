/** The evidence about one attempt: what it does, its checks with their output, what a person should know of it. */
import type { ReactNode } from "react";
import type { Attempt, Verdict } from "../../../src/base/schema/experiment.ts";
import { Link } from "../app/router.tsx";
import { StateShape } from "../parts/state.tsx";
import { duration } from "../parts/words.ts";

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
            {!check.passed && <span className="muted small number">exit {check.exitCode}</span>}
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

function Remarks({ attempt }: { readonly attempt: Attempt }): ReactNode {
  return (
    <>
      {attempt.flags.map((flag) => (
        <p key={flag} className="notice is-waiting wrap">
          {flag}
        </p>
      ))}
      {attempt.fewerTests !== null && <p className="notice is-waiting wrap">{attempt.fewerTests}</p>}
      {attempt.protectedChanged.length > 0 && (
        <p className="small wrap">
          It edited protected files, and was judged with the original ones: {attempt.protectedChanged.join(", ")}
        </p>
      )}
      {attempt.needs.length > 0 && <p className="small wrap">It needs: {attempt.needs.join(", ")}</p>}
      {attempt.sideChanges.length > 0 && <p className="small muted wrap">Not promoted: {attempt.sideChanges.join(", ")}</p>}
    </>
  );
}

export function AttemptDetails({ attempt }: { readonly attempt: Attempt }): ReactNode {
  return (
    <div className="stack details">
      <div className="stack">
        <h3>What it does</h3>
        <pre className="block" tabIndex={0}>
          {attempt.command}
        </pre>
      </div>
      <Remarks attempt={attempt} />
      <div className="halves">
        {attempt.checked !== null && <Checks title="Checks in the state it left" verdict={attempt.checked} />}
        {attempt.verified !== null && <Checks title="Checks on its change alone, in a fresh clone" verdict={attempt.verified} />}
      </div>
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
