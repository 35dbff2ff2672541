/** One sandbox: what it uses, a terminal in it, its files, commands, network and audit story. */
import { lazy, Suspense, useState, type ReactNode } from "react";
import type { SandboxDetail } from "../../../src/base/schema/sandbox.ts";
import type { PageProps } from "../app/pages.tsx";
import { go, Link } from "../app/router.tsx";
import { AuditList } from "../parts/audit-list.tsx";
import { FileBrowser } from "../parts/file-browser.tsx";
import { Ago, Answered, Command, Empty, Failure, Section, Title } from "../parts/parts.tsx";
import { asTitle, Tabs } from "../parts/tabs.tsx";
import { useHistory } from "../parts/history.ts";
import { Plot } from "../parts/plot.tsx";
import { ratesOf } from "../parts/readings.ts";
import { Snapshots } from "../parts/snapshots.tsx";
import { Commands } from "../sandbox/commands.tsx";
import { Processes } from "../sandbox/processes.tsx";
import { Network } from "../sandbox/network.tsx";
import { State, toneOf } from "../parts/state.tsx";
import { bytes, clock, duration, plural } from "../parts/words.ts";
import { useAct, useAnswer } from "../server/queries.ts";
import "../style/sandbox.css";

const SandboxTerminal = lazy(() => import("../terminal/terminal.tsx"));

const SandboxDesktop = lazy(() => import("../desktop/desktop.tsx"));

const Preview = lazy(() => import("../preview/preview.tsx"));

const Lab = lazy(() => import("../preview/lab.tsx"));

const TABS = ["overview", "terminal", "preview", "desktop", "notebook", "files", "commands", "network", "audit"] as const;
type Tab = (typeof TABS)[number];

function isLive({ state }: SandboxDetail): boolean {
  return state === "running" || state === "paused";
}

function Actions({ box }: { readonly box: SandboxDetail }): ReactNode {
  const [sure, setSure] = useState(false);
  const pause = useAct("pauseSandbox");
  const resume = useAct("resumeSandbox");
  const stop = useAct("stopSandbox");
  const start = useAct("startSandbox");
  const remove = useAct("removeSandbox");
  const sandbox = box.id;
  const acts = [pause, resume, stop, start, remove];
  const error = acts.map((act) => act.error).find((one) => one !== null);
  const busy = acts.some((act) => act.isPending);
  const button = (text: string, line: string, act: () => void): ReactNode => (
    <button key={text} type="button" className="button small" title={line} disabled={busy} onClick={act}>
      {text}
    </button>
  );
  return (
    <div className="stack">
      <div className="row wraps">
        {box.state === "running" && button("Pause", `viv pause ${box.name}`, () => pause.mutate({ sandbox }))}
        {box.state === "paused" && button("Resume", `viv resume ${box.name}`, () => resume.mutate({ sandbox }))}
        {isLive(box) && button("Stop", `viv stop ${box.name}`, () => stop.mutate({ sandbox }))}
        {box.endedAt !== null && button("Start", `viv start ${box.name}`, () => start.mutate({ sandbox }))}
        <Link className="button small" to={`/review/${box.name}`}>
          Review the change
        </Link>
        {sure ? (
          <>
            <span className="small">Its files and snapshots are lost for good.</span>
            <button
              type="button"
              className="button small danger"
              disabled={busy}
              onClick={() => remove.mutate({ sandbox }, { onSuccess: () => go("/work?show=sandboxes") })}
            >
              Yes, remove {box.name}
            </button>
            {button("Keep it", "", () => setSure(false))}
          </>
        ) : (
          <button type="button" className="button small danger" title={`viv rm ${box.name}`} onClick={() => setSure(true)}>
            Remove …
          </button>
        )}
      </div>
      {error !== undefined && <Failure error={error} />}
    </div>
  );
}

function Use({ box, stamp }: { readonly box: SandboxDetail; readonly stamp: number }): ReactNode {
  const { use, limits } = box;
  const memory = useHistory(use.memoryBytes, stamp);
  const cpu = useHistory(use.cpuMs, stamp);
  const processes = useHistory(use.processes, stamp);
  const disk = useHistory(use.diskBytes, stamp);
  const cores = ratesOf(cpu);
  return (
    <Section title="Use against limits">
      <div className="card">
        <div className="body plots">
          <Plot
            name="Memory"
            values={memory}
            limit={limits.memoryBytes}
            words={`${use.memoryBytes === null ? "–" : bytes(use.memoryBytes)} of ${bytes(limits.memoryBytes)}`}
          />
          <Plot name="CPU" values={cores} limit={limits.cpus} words={`${(cores.at(-1)?.value ?? 0).toFixed(2)} of ${limits.cpus} cores`} />
          <Plot name="Processes" values={processes} limit={limits.processes} words={`${use.processes ?? "–"} of ${limits.processes}`} />
          <Plot
            name="Disk"
            values={disk}
            limit={limits.diskBytes}
            words={`${use.diskBytes === null ? "–" : bytes(use.diskBytes)} of ${bytes(limits.diskBytes)}`}
          />
        </div>
      </div>
    </Section>
  );
}

/** Files of reality and inside change without an event. */
const REALITY_MS = 4_000;

function Reality({ box }: { readonly box: SandboxDetail }): ReactNode {
  const query = useAnswer("sandboxStatus", { sandbox: box.id }, { every: REALITY_MS });
  const refresh = useAct("refreshSandbox");
  return (
    <Section title="Against reality">
      <Answered query={query} what="how it stands to reality">
        {(status) => (
          <div className="card">
            <div className="body stack">
              <div className="row wraps">
                <State tone={status.stale ? "waiting" : "passed"}>{status.stale ? "stale" : "as reality is"}</State>
                <span className="small muted">
                  Cloned {duration(status.ageMs)} ago; {plural(status.changedInside, "file")} changed inside;{" "}
                  {plural(status.changes.length, "path")}
                  {status.more ? " and more" : ""} moved in reality.
                </span>
              </div>
              {refresh.error !== null && <Failure error={refresh.error} />}
              {status.stale && (
                <div className="row wraps">
                  <button
                    type="button"
                    className="button small"
                    disabled={refresh.isPending}
                    onClick={() => refresh.mutate({ sandbox: box.id })}
                  >
                    Bring reality in
                  </button>
                  <Command line={`viv refresh ${box.name}`} />
                </div>
              )}
            </div>
          </div>
        )}
      </Answered>
    </Section>
  );
}

function Overview({ box, stamp }: { readonly box: SandboxDetail; readonly stamp: number }): ReactNode {
  return (
    <div className="columns">
      <div className="stack" style={{ gap: 20 }}>
        <Use box={box} stamp={stamp} />
        <Reality box={box} />
        {box.notes.length > 0 && (
          <ul className="stack small muted">
            {box.notes.map((note) => (
              <li key={note} className="wrap">
                {note}
              </li>
            ))}
          </ul>
        )}
      </div>
      <aside className="aside">
        <Section title="About">
          <div className="card">
            <dl className="facts body small">
              <dt>Project</dt>
              <dd>
                <code>{box.project}</code>
              </dd>
              <dt>Walls</dt>
              <dd>
                {box.driver}
                {box.walled ? "" : ", UNWALLED"}
              </dd>
              <dt>Made</dt>
              <dd>
                <Ago at={box.createdAt} />
              </dd>
              <dt>In use by</dt>
              <dd>{box.uses.length === 0 ? "nothing" : box.uses.join(", ")}</dd>
              <dt>Ends by itself</dt>
              <dd>{box.expiresAt === null ? "never" : `at ${clock(box.expiresAt)}`}</dd>
              <dt>Base</dt>
              <dd>
                {plural(box.capture.files, "file")}, {bytes(box.capture.bytes)}
              </dd>
            </dl>
          </div>
        </Section>
        <Snapshots sandbox={box.id} />
      </aside>
    </div>
  );
}

interface ContentProps {
  readonly tab: Tab;
  readonly box: SandboxDetail;
  readonly stamp: number;
  readonly door: string | null;
}

function Content({ tab, box, stamp, door }: ContentProps): ReactNode {
  const needsLife = ["terminal", "preview", "desktop", "notebook", "files"].includes(tab);
  if (needsLife && !isLive(box)) return <Empty command={`viv start ${box.name}`}>It has ended. Start it again to see inside:</Empty>;
  switch (tab) {
    case "overview":
      return <Overview box={box} stamp={stamp} />;
    case "terminal":
      return (
        <Suspense fallback={<p className="muted">Loading the terminal …</p>}>
          <SandboxTerminal sandbox={box.id} />
          <Command line={`viv shell ${box.name}`} />
        </Suspense>
      );
    case "desktop":
      return (
        <Suspense fallback={<p className="muted">Loading the desktop …</p>}>
          <SandboxDesktop sandbox={box.id} name={box.name} />
        </Suspense>
      );
    case "preview":
      return (
        <Suspense fallback={<p className="muted">Loading the preview …</p>}>
          <Preview sandbox={box.id} name={box.name} door={door} address={`/sandbox/${box.name}?show=preview`} />
        </Suspense>
      );
    case "notebook":
      return (
        <Suspense fallback={<p className="muted">Loading the notebook …</p>}>
          <Lab sandbox={box.id} name={box.name} />
        </Suspense>
      );
    case "files":
      return <FileBrowser sandbox={box.id} name={box.name} root={box.project} />;
    case "commands":
      return (
        <div className="stack" style={{ gap: 20 }}>
          {isLive(box) && box.walled && <Processes box={box} />}
          <Commands box={box} />
        </div>
      );
    case "network":
      return <Network box={box} />;
    case "audit":
      return <AuditList sandbox={box.id} />;
  }
}

export default function SandboxPage({ parts: [reference = ""], query }: PageProps): ReactNode {
  const tab = TABS.find((one) => one === query.get("show")) ?? "overview";
  const answer = useAnswer("inspectSandbox", { sandbox: reference }, { every: 2_000 });
  return (
    <main className="page">
      <Answered query={answer} what="the sandbox">
        {(box) => (
          <>
            <Title
              crumbs={[{ to: "/work?show=sandboxes", text: "Sandboxes" }]}
              title={box.name}
              tab={`${box.outcome ?? box.state}: ${box.name}`}
              state={<State tone={toneOf(box.state, box.outcome)}>{box.outcome ?? box.state}</State>}
            >
              {box.reason !== null && <p className="muted small wrap">{box.reason}</p>}
              <Actions box={box} />
            </Title>
            <Tabs
              label="Parts of the sandbox"
              tabs={TABS.map((one) => ({ to: `/sandbox/${reference}?show=${one}`, text: asTitle(one), isShown: one === tab }))}
            />
            <Content tab={tab} box={box} stamp={answer.dataUpdatedAt} door={query.get("door")} />
          </>
        )}
      </Answered>
    </main>
  );
}
