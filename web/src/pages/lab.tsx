/** The way to JupyterLab of a sandbox, at the address that other tools have for it: the page becomes JupyterLab. */
import { useEffect, useState, type ReactNode } from "react";
import type { PageProps } from "../app/pages.tsx";
import { Link } from "../app/router.tsx";
import { Answered, Command, Empty, Failure, Title } from "../parts/parts.tsx";
import { openLab } from "../preview/lab.tsx";
import { useAnswer } from "../server/queries.ts";

function Choice(): ReactNode {
  const query = useAnswer("listSandboxes", { state: "running" });
  return (
    <Answered query={query} what="the sandboxes">
      {({ sandboxes }) =>
        sandboxes.length === 0 ? (
          <Empty command="viv create">No sandbox runs. Make one:</Empty>
        ) : (
          <ul>
            {sandboxes.map(({ id, name }) => (
              <li key={id}>
                <Link className="link" to={`/lab?sandbox=${name}`}>
                  {name}
                </Link>
              </li>
            ))}
          </ul>
        )
      }
    </Answered>
  );
}

function One({ reference }: { readonly reference: string }): ReactNode {
  const [error, setError] = useState<unknown>();
  const [again, setAgain] = useState(0);
  useEffect(() => {
    let gone = false;
    setError(undefined);
    openLab(reference).then(
      ({ url }) => !gone && location.replace(url),
      (failure: unknown) => !gone && setError(failure),
    );
    return () => {
      gone = true;
    };
  }, [reference, again]);
  return (
    <div className="stack">
      {error === undefined ? (
        <p className="muted" role="status">
          Starting JupyterLab in {reference} …
        </p>
      ) : (
        <Failure error={error} retry={() => setAgain(again + 1)} />
      )}
      <Command line={`viv notebook ${reference}`} />
    </div>
  );
}

export default function LabPage({ query }: PageProps): ReactNode {
  const reference = query.get("sandbox");
  return (
    <main className="page">
      <Title
        crumbs={reference === null ? [] : [{ to: `/sandbox/${reference}`, text: reference }]}
        title={reference === null ? "Notebooks" : "Notebook"}
        tab={reference === null ? "Notebooks" : `Notebook: ${reference}`}
      />
      {reference === null ? <Choice /> : <One reference={reference} />}
    </main>
  );
}
