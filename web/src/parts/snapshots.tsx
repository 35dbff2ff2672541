/** The snapshots of a sandbox as a tree, with rollback and fork. */
import type { ReactNode } from "react";
import type { Snapshot } from "../../../src/base/schema/sandbox.ts";
import { useAct, useAnswer } from "../server/queries.ts";
import { Ago, Empty, Failure, Section } from "./parts.tsx";
import { shortId } from "./words.ts";

/** How deep a snapshot is in the tree. */
function depthOf(snapshot: Snapshot, all: ReadonlyMap<string, Snapshot>): number {
  let depth = 0;
  for (let at = snapshot; at.parent !== null && depth < 12; depth += 1) {
    const parent = all.get(at.parent);
    if (parent === undefined) break;
    at = parent;
  }
  return depth;
}

export function Snapshots({ sandbox }: { readonly sandbox: string }): ReactNode {
  const query = useAnswer("listSnapshots", { sandbox });
  const take = useAct("createSnapshot");
  const rollback = useAct("rollback");
  const fork = useAct("forkSandbox");
  const snapshots = query.data?.snapshots ?? [];
  const byId = new Map(snapshots.map((one) => [one.id, one]));
  const error = take.error ?? rollback.error ?? fork.error;
  return (
    <Section
      title="Snapshots"
      count={snapshots.length}
      aside={
        <button
          type="button"
          className="button small"
          disabled={take.isPending}
          title={`viv snapshot ${sandbox}`}
          onClick={() => take.mutate({ sandbox })}
        >
          Take one
        </button>
      }
    >
      {error !== null && <Failure error={error} />}
      <div className="card">
        {snapshots.length === 0 ? (
          <Empty>None yet.</Empty>
        ) : (
          <ul className="list small">
            {snapshots.map((one) => (
              <li key={one.id} className="row" style={{ padding: "6px 14px", paddingLeft: 14 + depthOf(one, byId) * 8 }}>
                <span className="grow cut" title={one.id}>
                  {one.name ?? <code>{shortId(one.id)}</code>}
                  {one.current && <span className="is-passed"> · here</span>}
                </span>
                <span className="muted">
                  <Ago at={one.createdAt} />
                </span>
                <button
                  type="button"
                  className="button small plain"
                  title={`viv rollback ${sandbox} ${one.id}: processes end, files go back; take a snapshot first to come back here`}
                  disabled={rollback.isPending}
                  onClick={() => rollback.mutate({ sandbox, snapshot: one.id })}
                >
                  Roll back
                </button>
                <button
                  type="button"
                  className="button small plain"
                  title={`viv fork ${sandbox} --snapshot ${one.id}`}
                  disabled={fork.isPending}
                  onClick={() => fork.mutate({ sandbox, snapshot: one.id })}
                >
                  Fork
                </button>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Section>
  );
}
