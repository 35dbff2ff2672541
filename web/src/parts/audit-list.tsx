/** Who decided what, the newest first; of one sandbox, or of all. */
import type { ReactNode } from "react";
import { useAnswer } from "../server/queries.ts";
import { Answered, Empty } from "./parts.tsx";
import { State, type Tone } from "./state.tsx";
import { clock } from "./words.ts";

const TONES: Readonly<Record<string, Tone>> = { DENIED: "failed", APPROVED: "passed", RECORDED: "stopped" };

export function AuditList({ sandbox }: { readonly sandbox?: string }): ReactNode {
  const query = useAnswer("listAudit", { newest: true, limit: 200, ...(sandbox === undefined ? {} : { sandbox }) }, { every: 5_000 });
  return (
    <Answered query={query} what="the audit trail">
      {({ records }) => (
        <div className="card scroll-x" tabIndex={0}>
          {records.length === 0 ? (
            <Empty>Nothing was recorded yet.</Empty>
          ) : (
            <table className="small audit">
              <thead>
                <tr>
                  <th>Time</th>
                  <th>Who</th>
                  <th>What</th>
                  <th>Verdict</th>
                </tr>
              </thead>
              <tbody>
                {records.toReversed().map((one) => (
                  <tr key={one.sequence}>
                    <td className="number muted">{clock(one.at)}</td>
                    <td>{one.actor.kind}</td>
                    <td className="wrap">
                      <span className="strong">{one.action}</span> <code>{one.target}</code>
                      {one.reason !== null && <div className="muted">{one.reason}</div>}
                      {one.rule !== null && <div className="muted">rule {one.rule}</div>}
                    </td>
                    <td>
                      <State tone={TONES[one.label] ?? "running"}>{one.label.toLowerCase()}</State>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </div>
      )}
    </Answered>
  );
}
