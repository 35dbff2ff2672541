/** The snapshots of a sandbox as a tree, with rollback and fork. */
import { useState, type ReactNode } from "react";
import type { Snapshot } from "../../../src/base/schema/sandbox.ts";
import { Link } from "../app/router.tsx";
import { useAct, useAnswer } from "../server/queries.ts";
import { Ago, Empty, Failure, Section } from "./parts.tsx";
import { shortId } from "./words.ts";

interface Placed {
  readonly snapshot: Snapshot;
  /** For each level above, whether its line goes on below. */
  readonly lines: readonly boolean[];
  readonly last: boolean;
}

const DEEPEST = 8;

/** Parents before their children, each with the lines that lead to it. */
function treeOf(snapshots: readonly Snapshot[]): readonly Placed[] {
  const known = new Set(snapshots.map(({ id }) => id));
  const below = (parent: string | null): readonly Snapshot[] =>
    snapshots.filter((one) => (one.parent !== null && known.has(one.parent) ? one.parent : null) === parent);
  const place = (parent: string | null, lines: readonly boolean[]): readonly Placed[] =>
    below(parent).flatMap((snapshot, index, siblings) => {
      const last = index === siblings.length - 1;
      return [{ snapshot, lines, last }, ...place(snapshot.id, [...lines, !last])];
    });
  return place(null, []);
}

/** The lines of the tree before a name, as `git log --graph` and `tree` draw them. */
function Branch({ lines, last }: Pick<Placed, "lines" | "last">): ReactNode {
  if (lines.length === 0) return null;
  const above = lines.slice(1).slice(-DEEPEST);
  return (
    <span className="branch mono muted" aria-hidden="true">
      {above.map((goesOn) => (goesOn ? "│ " : "  ")).join("")}
      {last ? "└ " : "├ "}
    </span>
  );
}

/** Rolling back throws away what is there now, so that is kept as a snapshot first: going back is one press. */
function useRollback(sandbox: string): {
  readonly roll: (snapshot: string) => void;
  readonly back: string | undefined;
  readonly pending: boolean;
  readonly error: Error | null;
} {
  const take = useAct("createSnapshot");
  const rollback = useAct("rollback");
  const [back, setBack] = useState<string>();
  const work = async (snapshot: string): Promise<void> => {
    const kept = await take.mutateAsync({ sandbox });
    await rollback.mutateAsync({ sandbox, snapshot });
    setBack(kept.id);
  };
  return {
    // What went wrong stands above the list.
    roll: (snapshot) => void work(snapshot).catch(() => undefined),
    back,
    pending: take.isPending || rollback.isPending,
    error: take.error ?? rollback.error,
  };
}

export function Snapshots({ sandbox }: { readonly sandbox: string }): ReactNode {
  const query = useAnswer("listSnapshots", { sandbox });
  const take = useAct("createSnapshot");
  const fork = useAct("forkSandbox");
  const { roll, back, pending, error: failed } = useRollback(sandbox);
  const tree = treeOf(query.data?.snapshots ?? []);
  const error = take.error ?? failed ?? fork.error;
  const [forked] = fork.data?.sandboxes ?? [];
  return (
    <Section
      title="Snapshots"
      count={tree.length}
      aside={
        <button
          type="button"
          className="button small"
          disabled={take.isPending}
          title={`viv snapshot ${sandbox}`}
          onClick={() => take.mutate({ sandbox })}
        >
          {take.isPending ? "Taking one …" : "Take one"}
        </button>
      }
    >
      {error !== null && <Failure error={error} />}
      {back !== undefined && (
        <p className="notice small" role="status">
          <span className="grow">Rolled back. What was there is kept.</span>
          <button type="button" className="button small" disabled={pending} onClick={() => roll(back)}>
            Undo
          </button>
        </p>
      )}
      {forked !== undefined && (
        <p className="notice small" role="status">
          <span className="grow">Forked.</span>
          <Link className="link" to={`/sandbox/${forked.name}`}>
            {forked.name}
          </Link>
        </p>
      )}
      <div className="card">
        {tree.length === 0 ? (
          <Empty>None yet. A snapshot holds the files as they are; roll back to it, or fork it into another sandbox.</Empty>
        ) : (
          <ul className="list small snapshots">
            {tree.map(({ snapshot: one, lines, last }) => (
              <li key={one.id} className="row">
                <Branch lines={lines} last={last} />
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
                  title={`viv rollback ${sandbox} ${one.id}: processes end, files go back; what is there now is kept as a snapshot`}
                  disabled={pending}
                  onClick={() => roll(one.id)}
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
