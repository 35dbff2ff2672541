/** Who decided what, and whether the chain of records is whole. */
import type { ReactNode } from "react";
import { AuditList } from "../parts/audit-list.tsx";
import { Answered, Command } from "../parts/parts.tsx";
import { plural } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";

export function Audit(): ReactNode {
  const query = useAnswer("verifyAudit", {});
  return (
    <>
      <Answered query={query} what="whether the chain is whole">
        {(report) => (
          <div className={`notice is-${report.whole ? "passed" : "failed"}`}>
            <div className="stack grow">
              <span className="wrap">
                {report.whole
                  ? `The chain of ${plural(report.records, "record")} is whole: none was changed, taken out or put in.`
                  : report.problem}
              </span>
              <span className="small muted wrap">
                Newest: <code>{report.newest}</code>. Note it elsewhere, and a later change to an earlier record is found.
              </span>
              <div className="row wraps">
                <button type="button" className="button small" disabled={query.isFetching} onClick={() => void query.refetch()}>
                  {query.isFetching ? "Verifying …" : "Verify again"}
                </button>
                <Command line="viv audit --verify" />
              </div>
            </div>
          </div>
        )}
      </Answered>
      <AuditList />
    </>
  );
}
