/** What this machine can do, and what would make it do more. */
import type { ReactNode } from "react";
import { Answered, Sentence } from "../parts/parts.tsx";
import { State, type Tone } from "../parts/state.tsx";
import { useAnswer } from "../server/queries.ts";

const VERDICTS: Readonly<Record<string, Tone>> = { good: "passed", reduced: "waiting", missing: "failed" };

export function DoctorList(): ReactNode {
  const query = useAnswer("doctor", {});
  return (
    <Answered query={query} what="what this machine can do">
      {({ findings }) => (
        <div className="card">
          <ul className="list">
            {findings.map((one) => (
              <li key={one.check} className="finding">
                <State tone={VERDICTS[one.verdict] ?? "stopped"}>{one.verdict}</State>
                <div className="grow">
                  <div>
                    <span className="strong">{one.check}</span> <span className="wrap">{one.detail}</span>
                  </div>
                  {one.remedy !== null && (
                    <div className="muted small wrap">
                      <Sentence text={one.remedy} />
                    </div>
                  )}
                </div>
              </li>
            ))}
          </ul>
        </div>
      )}
    </Answered>
  );
}
