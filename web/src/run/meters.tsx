/** Steps, cost, context and time of a run, against their limits where it has some. */
import type { ReactNode } from "react";
import type { Run } from "../../../src/base/schema/run.ts";
import { Section, useNow } from "../parts/parts.tsx";
import { compact, dollars, duration } from "../parts/words.ts";

function Meter({
  name,
  value,
  limit,
  words,
}: {
  readonly name: string;
  readonly value: number;
  readonly limit: number | null;
  readonly words: string;
}): ReactNode {
  const share = limit === null || limit === 0 ? 0 : value / limit;
  return (
    <>
      <span className="muted">{name}</span>
      {limit === null ? (
        <span />
      ) : (
        <span
          className={`meter ${share >= 1 ? "over" : share > 0.8 ? "high" : ""}`}
          role="meter"
          aria-label={name}
          aria-valuenow={Math.round(share * 100)}
          aria-valuemin={0}
          aria-valuemax={100}
        >
          <i style={{ width: `${Math.min(100, share * 100)}%` }} />
        </span>
      )}
      <span className="number right">{words}</span>
    </>
  );
}

/** Windows of today's models in tokens. Agents do not tell which one their model has, so the smallest that holds the conversation is shown. */
const WINDOWS = [200_000, 400_000, 1_000_000, 2_000_000];

function windowFor(context: number): number | null {
  return WINDOWS.find((tokens) => context <= tokens) ?? null;
}

export function Meters({ run, contextTokens: context }: { readonly run: Run; readonly contextTokens: number | null }): ReactNode {
  const now = useNow();
  const took = (run.endedAt === null ? now : Date.parse(run.endedAt)) - Date.parse(run.startedAt ?? run.createdAt);
  return (
    <Section title="Meters">
      <div className="card">
        <div className="meters body">
          <Meter
            name="Steps"
            value={run.steps}
            limit={run.mostSteps}
            words={run.mostSteps === null ? String(run.steps) : `${run.steps} of ${run.mostSteps}`}
          />
          <Meter
            name="Cost"
            value={run.cost}
            limit={run.budget}
            words={run.budget === null ? dollars(run.cost) : `${dollars(run.cost)} of ${dollars(run.budget)}`}
          />
          <Meter
            name="Context"
            value={context ?? 0}
            limit={context === null ? null : windowFor(context)}
            words={context === null ? "not told" : `${compact(context)} tokens`}
          />
          <Meter name="Time" value={took} limit={null} words={duration(took)} />
        </div>
      </div>
    </Section>
  );
}
