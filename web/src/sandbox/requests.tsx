/** The last requests to the network: host, what was decided and by which rule, and how much went either way. */
import type { ReactNode } from "react";
import type { AuditRecord } from "../../../src/base/schema/audit.ts";
import type { SandboxDetail } from "../../../src/base/schema/sandbox.ts";
import { Ago, Answered, Command, Empty, Section } from "../parts/parts.tsx";
import { State } from "../parts/state.tsx";
import { bytes } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";
import { requestsOf } from "./request-rows.ts";

const LIVE_MS = 3_000;
/** A request has two records: when it is decided, and when it has ended. */
const READ = 400;
const SHOWN = 100;

function why({ reason, rule }: AuditRecord): string {
  return reason ?? (rule === null ? "" : `rule ${rule}`);
}

export function Requests({ box }: { readonly box: SandboxDetail }): ReactNode {
  const query = useAnswer("listAudit", { sandbox: box.id, action: "network.*", newest: true, limit: READ }, { every: LIVE_MS });
  return (
    <Answered query={query} what="requests">
      {({ records }) => {
        const requests = requestsOf(records).slice(0, SHOWN);
        return (
          <Section title="Last requests" count={requests.length} aside={<Command line={`viv audit ${box.name} --action 'network.*'`} />}>
            <div className="card scroll-x" tabIndex={0}>
              {requests.length === 0 ? (
                <Empty>It has asked for nothing outside.</Empty>
              ) : (
                <table className="small">
                  <thead>
                    <tr>
                      <th>Verdict</th>
                      <th>Where to</th>
                      <th className="right">Sent</th>
                      <th className="right">Received</th>
                      <th className="right">When</th>
                    </tr>
                  </thead>
                  <tbody>
                    {requests.map(({ record, what, ended }) => (
                      <tr key={record.sequence}>
                        <td>
                          <State tone={record.label === "DENIED" ? "failed" : "passed"}>
                            {record.label === "DENIED" ? "denied" : record.label === "APPROVED" ? "approved" : "allowed"}
                          </State>
                        </td>
                        <td className="wrap">
                          <code>{record.target}</code> <span className="muted">{what}</span>
                          {why(record) !== "" && <div className="muted">{why(record)}</div>}
                        </td>
                        <td className="right number">{ended === undefined ? "" : bytes(ended.sentBytes)}</td>
                        <td className="right number">{ended === undefined ? "" : bytes(ended.receivedBytes)}</td>
                        <td className="right">
                          <Ago at={record.at} />
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              )}
            </div>
          </Section>
        );
      }}
    </Answered>
  );
}
