/** All work: runs, experiments, sandboxes and promotions, the newest first. */
import { useState, type ReactNode } from "react";
import type { PageProps } from "../app/pages.tsx";
import { Answered, Empty, Title } from "../parts/parts.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { ExperimentRow, PromotionRow, RunRow, SandboxRow } from "../parts/rows.tsx";
import { useAnswer } from "../server/queries.ts";

const KINDS = ["runs", "experiments", "sandboxes", "promotions"] as const;
type Kind = (typeof KINDS)[number];

const TITLES: Readonly<Record<Kind, string>> = {
  runs: "Runs",
  experiments: "Experiments",
  sandboxes: "Sandboxes",
  promotions: "Promotions",
};
const NOTHING: Readonly<Record<Kind, readonly [words: string, command: string]>> = {
  runs: ["No agent has run yet. Give one a task:", "viv task 'fix the failing test'"],
  experiments: ["Nothing was tried yet. Try two approaches at once:", "viv try 'make fast' 'make small' --check 'npm test'"],
  sandboxes: ["There is no sandbox. Clone this machine:", "viv create"],
  promotions: ["Nothing was promoted yet. Bring a sandbox's change into reality:", "viv promote SANDBOX"],
};
/** More rows than a person reads; the rest comes on demand. */
const PAGE_ROWS = 100;

interface Listed {
  readonly key: string;
  readonly text: string;
  readonly row: ReactNode;
}

function Rows({ rows, kind }: { readonly rows: readonly Listed[]; readonly kind: Kind }): ReactNode {
  const [wanted, setWanted] = useState("");
  const [shown, setShown] = useState(PAGE_ROWS);
  const found = rows.filter(({ text }) => text.toLowerCase().includes(wanted.trim().toLowerCase()));
  const [words, command] = NOTHING[kind];
  return (
    <>
      {rows.length > 5 && (
        <input
          className="field"
          type="search"
          aria-label={`Find ${kind}`}
          placeholder={`Find ${kind} by name, task, project or state`}
          value={wanted}
          onChange={(event) => setWanted(event.target.value)}
        />
      )}
      <div className="card">
        {found.length === 0 ? (
          rows.length === 0 ? (
            <Empty command={command}>{words}</Empty>
          ) : (
            <Empty>
              None of {rows.length} fits “{wanted}”.
            </Empty>
          )
        ) : (
          <ul className="list">{found.slice(0, shown).map(({ row }) => row)}</ul>
        )}
      </div>
      {found.length > shown && (
        <div>
          <button type="button" className="button" onClick={() => setShown(shown + PAGE_ROWS)}>
            Show {Math.min(PAGE_ROWS, found.length - shown)} more of {found.length - shown}
          </button>
        </div>
      )}
    </>
  );
}

function Runs(): ReactNode {
  const query = useAnswer("listRuns", { all: true });
  return (
    <Answered query={query} what="runs">
      {({ runs }) => (
        <Rows
          kind="runs"
          rows={runs.map((run) => ({
            key: run.id,
            text: `${run.task} ${run.agent} ${run.project} ${run.outcome ?? run.state}`,
            row: <RunRow key={run.id} run={run} />,
          }))}
        />
      )}
    </Answered>
  );
}

function Experiments(): ReactNode {
  const query = useAnswer("listExperiments", { all: true });
  return (
    <Answered query={query} what="experiments">
      {({ experiments }) => (
        <Rows
          kind="experiments"
          rows={experiments.map((one) => ({
            key: one.id,
            text: `${one.project} ${one.state} ${one.attempts.map(({ name, command }) => `${name} ${command}`).join(" ")}`,
            row: <ExperimentRow key={one.id} experiment={one} />,
          }))}
        />
      )}
    </Answered>
  );
}

function Sandboxes(): ReactNode {
  const query = useAnswer("listSandboxes", {});
  return (
    <Answered query={query} what="sandboxes">
      {({ sandboxes }) => (
        <Rows
          kind="sandboxes"
          rows={sandboxes.toReversed().map((box) => ({
            key: box.id,
            text: `${box.name} ${box.project} ${box.outcome ?? box.state}`,
            row: <SandboxRow key={box.id} sandbox={box} />,
          }))}
        />
      )}
    </Answered>
  );
}

function Promotions(): ReactNode {
  const query = useAnswer("listPromotions", { all: true });
  return (
    <Answered query={query} what="promotions">
      {({ promotions }) => (
        <Rows
          kind="promotions"
          rows={promotions.map((one) => ({
            key: one.id,
            text: `${one.project} ${one.state} ${one.sandboxName ?? ""} ${one.message ?? ""}`,
            row: <PromotionRow key={one.id} promotion={one} />,
          }))}
        />
      )}
    </Answered>
  );
}

const LISTS: Readonly<Record<Kind, () => ReactNode>> = {
  runs: Runs,
  experiments: Experiments,
  sandboxes: Sandboxes,
  promotions: Promotions,
};

export default function Work({ query }: PageProps): ReactNode {
  const kind = KINDS.find((one) => one === query.get("show")) ?? "runs";
  const List = LISTS[kind];
  return (
    <main className="page">
      <Title title="Work" tab={TITLES[kind]} />
      <Tabs label="Kinds of work" tabs={KINDS.map((one) => ({ to: `/work?show=${one}`, text: TITLES[one], isShown: one === kind }))} />
      <List key={kind} />
    </main>
  );
}
