/** JupyterLab of a sandbox alone, at the address that other tools have for it. */
import { lazy, Suspense, type ReactNode } from "react";
import type { PageProps } from "../app/pages.tsx";
import { Link } from "../app/router.tsx";
import { Answered, Empty, Title } from "../parts/parts.tsx";
import { useAnswer } from "../server/queries.ts";

const Lab = lazy(() => import("../preview/lab.tsx"));

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
  const query = useAnswer("findSandbox", { sandbox: reference });
  return (
    <Answered query={query} what="the sandbox">
      {({ id, name }) => (
        <Suspense fallback={<p className="muted">Loading the notebook …</p>}>
          <Lab sandbox={id} name={name} />
        </Suspense>
      )}
    </Answered>
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
