/** Automations and firings as rows of lists. */
import type { ReactNode } from "react";
import type { Automation, Firing } from "../../../src/base/schema/automation.ts";
import { triggerText } from "../../../src/base/schema/automation-words.ts";
import { Ago, useNow } from "../parts/parts.tsx";
import { Row } from "../parts/rows.tsx";
import { baseName } from "../parts/words.ts";
import { automationWords, firingTone, firingWord, resultLine, seenLine, until } from "./words.ts";

export function Until({ at }: { readonly at: string }): ReactNode {
  const now = useNow(10_000);
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {until(at, now)}
    </time>
  );
}

/** When it is due, or when it fired last. */
function Times({ automation: { nextAt, last } }: { readonly automation: Automation }): ReactNode {
  return (
    <span className="stack" style={{ gap: 0 }}>
      {nextAt !== null && (
        <span>
          next <Until at={nextAt} />
        </span>
      )}
      {last === null ? (
        <span>has not fired</span>
      ) : (
        <span>
          <Ago at={last.at} />: {firingWord(last.state)}
        </span>
      )}
    </span>
  );
}

export function AutomationRow({ automation, acts }: { readonly automation: Automation; readonly acts?: ReactNode }): ReactNode {
  const { tone, text } = automationWords(automation);
  const { id, name, project, authority, reason } = automation;
  const parts = [reason === null ? text : `${text}: ${reason}`, authority, baseName(project)];
  return (
    <Row
      to={`/automation/${id}`}
      tone={tone}
      word={text}
      title={
        <>
          <span className="strong">{name}</span> <span className="muted">waits for {triggerText(automation)}</span>
        </>
      }
      under={parts.join(" · ")}
      end={<Times automation={automation} />}
      acts={acts}
    />
  );
}

export function FiringRow({ firing, named = false }: { readonly firing: Firing; readonly named?: boolean }): ReactNode {
  const { id, name, state, seenAt, project } = firing;
  return (
    <Row
      to={`/firing/${id}`}
      tone={firingTone(state)}
      word={firingWord(state)}
      title={named ? `${name}: ${seenLine(firing)}` : seenLine(firing)}
      under={named ? `${resultLine(firing)} · ${baseName(project)}` : resultLine(firing)}
      end={<Ago at={seenAt} />}
    />
  );
}
