/** One agent on one task: what it says and does as it grows, what it costs, a terminal beside it, and a box to talk to it. */
import { lazy, Suspense, type ReactNode } from "react";
import type { Run } from "../../../src/base/schema/run.ts";
import type { PageProps } from "../app/pages.tsx";
import { Link } from "../app/router.tsx";
import { Ago, Answered, Command, Empty, Title } from "../parts/parts.tsx";
import { runWords } from "../parts/rows.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { PreviewSection } from "../preview/preview.tsx";
import { Snapshots } from "../parts/snapshots.tsx";
import { State, toneOf } from "../parts/state.tsx";
import { baseName, firstLine } from "../parts/words.ts";
import { Conversation } from "../run/conversation.tsx";
import { FilesChanged } from "../run/files-changed.tsx";
import { Meters } from "../run/meters.tsx";
import { Talk } from "../run/talk.tsx";
import { useAnswer } from "../server/queries.ts";
import { useRunEvents } from "../server/run-events.ts";
import type { SeenRun } from "../server/run-log.ts";
import "../style/conversation.css";
import "../style/sandbox.css";

const SandboxTerminal = lazy(() => import("../terminal/terminal.tsx"));

function About({ run }: { readonly run: Run }): ReactNode {
  const sandbox = useAnswer("findSandbox", { sandbox: run.sandbox ?? "" }, { enabled: run.sandbox !== null });
  return (
    <div className="row wraps small muted">
      <span>
        {run.agent}
        {run.model === null ? "" : ` · ${run.model}`}
      </span>
      <span>{baseName(run.project)}</span>
      {sandbox.data !== undefined && (
        <Link className="link" to={`/sandbox/${sandbox.data.name}`}>
          {sandbox.data.name}
        </Link>
      )}
      {run.experiment !== null && (
        <Link className="link" to={`/experiment/${run.experiment}`}>
          Verdict and promotion
        </Link>
      )}
      <Ago at={run.createdAt} />
      {run.restarts > 0 && <span>restarted {run.restarts} times</span>}
    </div>
  );
}

interface Pane {
  readonly name: string;
  readonly text: string;
  readonly draw: (run: Run, seen: SeenRun) => ReactNode;
}

/** What can stand beside the conversation. The address says which: `?beside=terminal`. */
const PANES: readonly [Pane, ...Pane[]] = [
  {
    name: "state",
    text: "State",
    draw: (run, { contextTokens, paths }) => (
      <>
        <Meters run={run} contextTokens={contextTokens} />
        <FilesChanged run={run} paths={paths} />
        {run.sandbox !== null && run.endedAt === null && <PreviewSection sandbox={run.sandbox} />}
        {run.sandbox !== null && <Snapshots sandbox={run.sandbox} />}
      </>
    ),
  },
  {
    name: "terminal",
    text: "Terminal",
    draw: (run) =>
      run.sandbox === null ? (
        <Empty>The run has no sandbox now, so there is nothing to open a shell in.</Empty>
      ) : (
        <Suspense fallback={<p className="muted">Loading the terminal …</p>}>
          <SandboxTerminal sandbox={run.sandbox} />
        </Suspense>
      ),
  },
];

function Beside({ run, seen, pane }: { readonly run: Run; readonly seen: SeenRun; readonly pane: Pane }): ReactNode {
  return (
    <aside className="aside sticks" aria-label="Beside the conversation">
      <Tabs
        label="What stands beside the conversation"
        keep
        tabs={PANES.map(({ name, text }) => ({
          to: `/run/${run.id}${name === "state" ? "" : `?beside=${name}`}`,
          text,
          isShown: name === pane.name,
        }))}
      />
      {pane.draw(run, seen)}
    </aside>
  );
}

function Ended({ run }: { readonly run: Run }): ReactNode {
  return (
    <div className="row wraps">
      {run.experiment !== null && (
        <Link className="button" to={`/experiment/${run.experiment}`}>
          See the verdict
        </Link>
      )}
      {run.sandbox !== null && (
        <Link className="button" to={`/review/${run.sandbox}`}>
          Review the change
        </Link>
      )}
      <Command line={`viv context ${run.id}`} />
    </div>
  );
}

function One({ run, beside }: { readonly run: Run; readonly beside: string | null }): ReactNode {
  const seen = useRunEvents(run.id);
  const { tone, text } = runWords(run);
  const isOver = run.endedAt !== null;
  const pane = PANES.find(({ name }) => name === beside) ?? PANES[0];
  return (
    <>
      <Title
        crumbs={[{ to: "/work?show=runs", text: "Runs" }]}
        title={firstLine(run.task)}
        tab={`${text}: ${firstLine(run.task)}`}
        state={<State tone={tone}>{text}</State>}
      >
        <About run={run} />
      </Title>
      {run.reason !== null && (
        <div className={`notice is-${toneOf(run.state, run.outcome)}`}>
          <span className="wrap">{run.reason}</span>
        </div>
      )}
      <div className={`columns ${pane.name === "state" ? "" : "even"}`}>
        <div className="stack talking">
          {seen.entries.length === 0 ? (
            <p className="muted grow">{isOver ? "It has not said anything." : "It has not said anything yet."}</p>
          ) : (
            <Conversation entries={seen.entries} cut={seen.cut} grows={!isOver} />
          )}
          {isOver ? <Ended run={run} /> : <Talk run={run} />}
        </div>
        <Beside run={run} seen={seen} pane={pane} />
      </div>
    </>
  );
}

export default function RunPage({ parts: [id = ""], query }: PageProps): ReactNode {
  const answer = useAnswer("inspectRun", { run: id }, { every: 3_000 });
  const beside = query.get("beside");
  return (
    <main className={`page ${beside === null ? "" : "wide"}`}>
      <Answered query={answer} what="the run">
        {(run) => <One run={run} beside={beside} />}
      </Answered>
    </main>
  );
}
