/** What a person does with an automation: pause, resume, start it now, and ask what it would do. */
import type { ReactNode } from "react";
import type { Automation, AutomationTest } from "../../../src/base/schema/automation.ts";
import { AUTHORITY_TEXT } from "../../../src/base/schema/automation-words.ts";
import { go } from "../app/router.tsx";
import { Command, Failure } from "../parts/parts.tsx";
import { useAct } from "../server/queries.ts";

const WAYS: Readonly<Record<AutomationTest["triage"]["way"], string>> = {
  alert: "Tell you",
  direct: "Look, in reality",
  propose: "Try it in a sandbox, and propose it",
  sandbox: "Try it in a sandbox, and promote it if its checks pass",
};

export function wayWords(way: AutomationTest["triage"]["way"]): string {
  return WAYS[way];
}

/** The answer of a dry look: nothing was done. */
function Would({ test }: { readonly test: AutomationTest }): ReactNode {
  const { seen, wouldFire, triage, hindrance, automation } = test;
  return (
    <div className="notice stack" role="status">
      <p className="strong">What it would do now; nothing was done.</p>
      <dl className="facts small">
        <dt>Sees</dt>
        <dd>{seen}</dd>
        <dt>Would fire</dt>
        <dd>{wouldFire ? "yes" : "no: nothing new is there"}</dd>
        <dt>Would do</dt>
        <dd>
          {WAYS[triage.way]}. {triage.reason}
        </dd>
        <dt>May</dt>
        <dd>
          <code>{automation.authority}</code>: it {AUTHORITY_TEXT[automation.authority]}
        </dd>
        <dt>In its way</dt>
        <dd>{hindrance ?? "nothing"}</dd>
      </dl>
    </div>
  );
}

interface ActionsProps {
  readonly automation: Automation;
  /** Whether the lines of viv stand beside the buttons. */
  readonly commands?: boolean;
}

export function Actions({ automation: { id, name, state }, commands = false }: ActionsProps): ReactNode {
  const pause = useAct("pauseAutomation");
  const resume = useAct("resumeAutomation");
  const run = useAct("runAutomation");
  const test = useAct("testAutomation");
  const isResting = state === "paused" || state === "muted";
  const turn = isResting ? resume : pause;
  const turnLine = isResting ? `viv automation resume ${name}` : `viv automation pause ${name}`;
  const error = pause.error ?? resume.error ?? run.error ?? test.error;
  const of = { automation: id };
  return (
    <div className="stack acts">
      <div className="row wraps">
        <button
          type="button"
          className="button small"
          disabled={run.isPending || state === "broken"}
          onClick={() => run.mutate(of, { onSuccess: (firing) => go(`/firing/${firing.id}`) })}
          aria-label={`Run now: ${name}`}
        >
          Run now
        </button>
        {commands && <Command line={`viv automation run ${name}`} />}
        {state !== "broken" && (
          <>
            <button
              type="button"
              className="button small"
              disabled={turn.isPending}
              onClick={() => turn.mutate(of)}
              aria-label={`${isResting ? "Resume" : "Pause"}: ${name}`}
            >
              {isResting ? "Resume" : "Pause"}
            </button>
            {commands && <Command line={turnLine} />}
          </>
        )}
        <button
          type="button"
          className="button small"
          disabled={test.isPending}
          onClick={() => test.mutate(of)}
          aria-label={`${test.isPending ? "Looking …" : "What would it do?"} ${name}`}
        >
          {test.isPending ? "Looking …" : "What would it do?"}
        </button>
        {commands && <Command line={`viv automation test ${name}`} />}
      </div>
      {error !== null && <Failure error={error} />}
      {test.data !== undefined && <Would test={test.data} />}
    </div>
  );
}
