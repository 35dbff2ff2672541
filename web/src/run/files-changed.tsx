/** What a run has changed so far: as its sandbox is now, or, once that is gone, as the agent told. */
import type { ReactNode } from "react";
import type { Run } from "../../../src/base/schema/run.ts";
import { Link } from "../app/router.tsx";
import { Empty, Section } from "../parts/parts.tsx";
import { useAnswer } from "../server/queries.ts";

const LIVE_MS = 4_000;
const SHOWN = 200;

interface Changed {
  readonly path: string;
  readonly added: number | null;
  readonly removed: number | null;
}

export function FilesChanged({ run, paths }: { readonly run: Run; readonly paths: readonly string[] }): ReactNode {
  const diff = useAnswer(
    "diffSandbox",
    { sandbox: run.sandbox ?? "", stat: true, promotable: true },
    { enabled: run.sandbox !== null, ...(run.endedAt === null ? { every: LIVE_MS } : {}) },
  );
  const files: readonly Changed[] = diff.data?.entries ?? paths.map((path) => ({ path, added: null, removed: null }));
  return (
    <Section
      title="Files changed"
      count={files.length}
      aside={
        run.sandbox !== null && (
          <Link className="link small" to={`/review/${run.sandbox}`}>
            Review
          </Link>
        )
      }
    >
      <div className="card">
        {files.length === 0 ? (
          <Empty>None yet. What the agent changes shows up here, and can be reviewed line by line.</Empty>
        ) : (
          <ul className="list small files-changed">
            {files.slice(0, SHOWN).map(({ path, added, removed }) => (
              <li key={path}>
                <Link className="row" to={`/review/${run.sandbox ?? ""}?file=${encodeURIComponent(path)}`}>
                  <code className="wrap grow">{path}</code>
                  {added !== null && (
                    <span className="number">
                      <span className="is-passed">+{added}</span> <span className="is-failed">−{removed}</span>
                    </span>
                  )}
                </Link>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Section>
  );
}
