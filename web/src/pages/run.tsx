/** One agent on one task: what it says and does as it grows, what it costs, and a box to talk to it. */
import { useState, type FormEvent, type KeyboardEvent, type ReactNode } from "react";
import type { Run, RunEvent, RunMessage } from "../../../src/base/schema/run.ts";
import type { PageProps } from "../app/pages.tsx";
import { Link } from "../app/router.tsx";
import { Conversation } from "../parts/conversation.tsx";
import { Ago, Answered, Command, Empty, Failure, Section, Title, useNow } from "../parts/parts.tsx";
import { runWords } from "../parts/rows.tsx";
import { PreviewSection } from "../preview/preview.tsx";
import { Snapshots } from "../parts/snapshots.tsx";
import { State, toneOf, type Tone } from "../parts/state.tsx";
import { baseName, compact, dollars, duration, firstLine } from "../parts/words.ts";
import { useAct, useAnswer } from "../server/queries.ts";
import { useRunEvents } from "../server/run-events.ts";

type Way = "steer" | "after-turn" | "interrupt";

const WAYS: readonly { readonly way: Way; readonly text: string; readonly says: string; readonly flags: string }[] = [
  { way: "steer", text: "Steer", says: "It reads this at its next tool call.", flags: "" },
  { way: "after-turn", text: "Queue", says: "It reads this when its turn has ended.", flags: " --after-turn" },
  { way: "interrupt", text: "Interrupt", says: "What it does now ends, and it goes on with this.", flags: " --urgent" },
];

const FATES: Readonly<Record<RunMessage["state"], readonly [tone: Tone, words: string]>> = {
  queued: ["waiting", "queued"],
  sent: ["running", "sent, not confirmed yet"],
  delivered: ["passed", "delivered"],
  failed: ["failed", "not delivered"],
};

function Fate({ message }: { readonly message: RunMessage }): ReactNode {
  const [tone, words] = FATES[message.state];
  return (
    <div className="row small">
      <State tone={tone}>{words}</State>
      <span className="cut muted">
        {message.reason === null ? "" : `${message.reason} `}
        {firstLine(message.text)}
      </span>
    </div>
  );
}

function shellText(text: string): string {
  return `'${firstLine(text).slice(0, 60).replaceAll("'", "'\\''")}'`;
}

function Talk({ run }: { readonly run: Run }): ReactNode {
  const [text, setText] = useState("");
  const [way, setWay] = useState<Way>("steer");
  const say = useAct("sayToRun");
  const interrupt = useAct("interruptRun");
  const stop = useAct("stopRun");
  const messages = useAnswer("listRunMessages", { run: run.id }, { every: 2_000 });
  const own = (messages.data?.messages ?? []).filter(({ from }) => from === "person");
  const chosen = WAYS.find((one) => one.way === way);
  const send = async (): Promise<void> => {
    if (text.trim() === "" || say.isPending) return;
    if (way === "interrupt") await interrupt.mutateAsync({ run: run.id });
    await say.mutateAsync({ run: run.id, text, way: way === "interrupt" ? "urgent" : way });
    setText("");
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send().catch(() => undefined);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    // What went wrong stands above the box.
    void send().catch(() => undefined);
  };
  return (
    <form className="talk" onSubmit={submit}>
      {say.error !== null && <Failure error={say.error} />}
      {interrupt.error !== null && <Failure error={interrupt.error} />}
      {stop.error !== null && <Failure error={stop.error} />}
      {own.length > 0 && (
        <div className="fates" aria-label="What became of your messages" role="log">
          {own.slice(-3).map((message) => (
            <Fate key={message.id} message={message} />
          ))}
        </div>
      )}
      <textarea
        className="field"
        rows={2}
        aria-label="Message to the agent"
        placeholder="Say something to the agent"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={press}
      />
      <div className="row wraps">
        <fieldset className="choice" style={{ margin: 0, padding: 0 }}>
          <legend className="sr-only">When the agent reads it</legend>
          {WAYS.map((one) => (
            <label key={one.way} title={one.says}>
              <input type="radio" name="way" value={one.way} checked={one.way === way} onChange={() => setWay(one.way)} />
              {one.text}
            </label>
          ))}
        </fieldset>
        <button type="submit" className="button primary" disabled={text.trim() === "" || say.isPending}>
          {say.isPending ? "Sending …" : "Send"}
        </button>
        <span className="small muted grow cut says">{chosen?.says}</span>
        <button
          type="button"
          className="button danger"
          title={`viv experiment ${run.experiment ?? ""} cancel`}
          disabled={stop.isPending}
          onClick={() => stop.mutate({ run: run.id })}
        >
          Stop
        </button>
      </div>
      <Command line={`viv say ${run.id} ${text.trim() === "" ? "'...'" : shellText(text)}${chosen?.flags ?? ""}`} />
    </form>
  );
}

function Meter({
  name,
  value,
  limit,
  words,
}: {
  readonly name: string;
  readonly value: number;
  readonly limit: number | null;
  readonly words: string;
}): ReactNode {
  const share = limit === null || limit === 0 ? 0 : value / limit;
  return (
    <>
      <span className="muted">{name}</span>
      {limit === null ? (
        <span />
      ) : (
        <span
          className={`meter ${share >= 1 ? "over" : share > 0.8 ? "high" : ""}`}
          role="meter"
          aria-label={name}
          aria-valuenow={Math.round(share * 100)}
          aria-valuemin={0}
          aria-valuemax={100}
        >
          <i style={{ width: `${Math.min(100, share * 100)}%` }} />
        </span>
      )}
      <span className="number right">{words}</span>
    </>
  );
}

function Meters({ run, events }: { readonly run: Run; readonly events: readonly RunEvent[] }): ReactNode {
  const now = useNow();
  const usage = events.findLast((event) => event.type === "usage");
  const context = usage?.type === "usage" ? usage.contextTokens : null;
  const took = (run.endedAt === null ? now : Date.parse(run.endedAt)) - Date.parse(run.startedAt ?? run.createdAt);
  return (
    <Section title="Meters">
      <div className="card">
        <div className="meters body">
          <Meter
            name="Steps"
            value={run.steps}
            limit={run.mostSteps}
            words={run.mostSteps === null ? String(run.steps) : `${run.steps} of ${run.mostSteps}`}
          />
          <Meter
            name="Cost"
            value={run.cost}
            limit={run.budget}
            words={run.budget === null ? dollars(run.cost) : `${dollars(run.cost)} of ${dollars(run.budget)}`}
          />
          <Meter name="Context" value={context ?? 0} limit={null} words={context === null ? "not told" : `${compact(context)} tokens`} />
          <Meter name="Time" value={took} limit={null} words={duration(took)} />
        </div>
      </div>
    </Section>
  );
}

function Files({ run, events }: { readonly run: Run; readonly events: readonly RunEvent[] }): ReactNode {
  const paths = [...new Set(events.flatMap((event) => (event.type === "file_change" ? event.paths : [])))];
  return (
    <Section
      title="Files changed"
      count={paths.length}
      aside={
        run.sandbox !== null && (
          <Link className="link small" to={`/review/${run.sandbox}`}>
            Review
          </Link>
        )
      }
    >
      <div className="card">
        {paths.length === 0 ? (
          <Empty>None yet.</Empty>
        ) : (
          <ul className="list small" style={{ maxHeight: 260, overflow: "auto" }}>
            {paths.map((path) => (
              <li key={path} style={{ padding: "4px 14px" }}>
                <code className="wrap">{path}</code>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Section>
  );
}

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

function One({ run }: { readonly run: Run }): ReactNode {
  const { events, cut } = useRunEvents(run.id);
  const { tone, text } = runWords(run);
  const isOver = run.endedAt !== null;
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
      <div className="columns">
        <div className="stack">
          {events.length === 0 ? <p className="muted">It has not said anything yet.</p> : <Conversation events={events} cut={cut} />}
          {isOver ? (
            <div className="row wraps">
              <Command line={`viv context ${run.id}`} />
              {run.experiment !== null && (
                <Link className="button" to={`/experiment/${run.experiment}`}>
                  See the verdict
                </Link>
              )}
            </div>
          ) : (
            <Talk run={run} />
          )}
        </div>
        <aside className="aside">
          <Meters run={run} events={events} />
          <Files run={run} events={events} />
          {run.sandbox !== null && !isOver && <PreviewSection sandbox={run.sandbox} />}
          {run.sandbox !== null && <Snapshots sandbox={run.sandbox} />}
        </aside>
      </div>
    </>
  );
}

export default function RunPage({ parts: [id = ""] }: PageProps): ReactNode {
  const query = useAnswer("inspectRun", { run: id }, { every: 3_000 });
  return (
    <main className="page">
      <Answered query={query} what="the run">
        {(run) => <One run={run} />}
      </Answered>
    </main>
  );
}
