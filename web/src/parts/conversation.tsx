/** What an agent said and did, one entry after the other; calls of tools are folded. All of it is text of the agent's. */
import { useState, type ReactNode } from "react";
import type { RunEvent } from "../../../src/base/schema/run.ts";
import { Icon, type IconName } from "./icons.tsx";
import { StateShape, type Tone } from "./state.tsx";
import { clock, duration, firstLine, plural } from "./words.ts";
import "../style/conversation.css";

type Of<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;

interface Call {
  readonly call: Of<"tool_call">;
  readonly result: Of<"tool_result"> | undefined;
}

type Entry = { readonly key: number; readonly call: Call } | { readonly key: number; readonly event: RunEvent };

/** Entries of a long conversation that are drawn at once; earlier ones on demand. */
const SHOWN = 300;
const HIDDEN: ReadonlySet<RunEvent["type"]> = new Set(["usage", "turn", "command_output", "resumed", "tool_result"]);

function entriesOf(events: readonly RunEvent[]): Entry[] {
  const results = new Map(events.flatMap((event) => (event.type === "tool_result" ? [[event.call, event] as const] : [])));
  return events
    .filter((event) => !HIDDEN.has(event.type))
    .map((event) =>
      event.type === "tool_call"
        ? { key: event.sequence, call: { call: event, result: results.get(event.call) } }
        : { key: event.sequence, event },
    );
}

/** What a tool was given, as one line: the command, the path, or the first words of the rest. */
function inputLine(input: unknown): string {
  if (typeof input === "string") return firstLine(input);
  if (typeof input !== "object" || input === null) return "";
  const fields = input as Readonly<Record<string, unknown>>;
  const best = ["command", "file_path", "path", "pattern", "url", "query"]
    .map((name) => fields[name])
    .find((value) => typeof value === "string");
  return firstLine(typeof best === "string" ? best : JSON.stringify(input));
}

function CallEntry({ call, result }: Call): ReactNode {
  const tone: Tone = result === undefined ? "running" : result.ok ? "passed" : "failed";
  const took = result === undefined ? undefined : Date.parse(result.at) - Date.parse(call.at);
  return (
    <details className="call">
      <summary>
        <StateShape tone={tone} />
        <span className="sr-only">{result === undefined ? "runs" : result.ok ? "went well" : "failed"}</span>
        <span className="strong">{call.tool}</span>
        <code className="cut grow muted">{inputLine(call.input)}</code>
        <span className="muted small number">{took === undefined ? "runs" : duration(took)}</span>
      </summary>
      <div className="inside">
        <h3>Input</h3>
        <pre className="block" tabIndex={0}>
          {typeof call.input === "string" ? call.input : JSON.stringify(call.input, null, 2)}
        </pre>
        {result !== undefined && (
          <>
            <h3>Output</h3>
            <pre className="block" tabIndex={0}>
              {result.output === "" ? "(nothing)" : result.output}
            </pre>
          </>
        )}
      </div>
    </details>
  );
}

const FROM: Readonly<Record<Of<"message">["from"], readonly [name: string, icon: IconName]>> = {
  agent: ["Agent", "agent"],
  person: ["You", "person"],
  guardian: ["Guardian", "warning"],
  system: ["Vivarium", "machine"],
};

function Message({ event }: { readonly event: Of<"message"> }): ReactNode {
  const [name, icon] = FROM[event.from];
  return (
    <div className={`message from-${event.from}`}>
      <Icon name={icon} />
      <div className="grow">
        <div className="row small">
          <span className="strong">{name}</span>
          <time className="muted number" dateTime={event.at}>
            {clock(event.at)}
          </time>
        </div>
        <div className="said">{event.text}</div>
      </div>
    </div>
  );
}

function Line({ children, tone }: { readonly children: ReactNode; readonly tone?: Tone }): ReactNode {
  return (
    <div className="line small muted">
      {tone !== undefined && <StateShape tone={tone} />}
      <span className="wrap">{children}</span>
    </div>
  );
}

function EventEntry({ event }: { readonly event: RunEvent }): ReactNode {
  switch (event.type) {
    case "message":
      return <Message event={event} />;
    case "started":
      return (
        <Line>
          {event.agent} {event.version ?? ""} began{event.model === null ? "" : ` with ${event.model}`} at {clock(event.at)}
        </Line>
      );
    case "thinking":
      return (
        <details className="call">
          <summary>
            <span className="muted">Thinking</span>
            <span className="cut grow muted">{firstLine(event.text)}</span>
          </summary>
          <div className="inside said muted">{event.text}</div>
        </details>
      );
    case "file_change":
      return (
        <Line>
          Changed {event.paths.slice(0, 3).join(", ")}
          {event.paths.length + event.more > 3 ? ` and ${plural(event.paths.length + event.more - 3, "more file")}` : ""}
        </Line>
      );
    case "waiting":
      return (
        <Line tone="waiting">
          Waits for {event.for === "person" ? "you" : event.for === "rate_limit" ? "a rate limit" : "another try"}
          {event.until === null ? "" : ` until ${clock(event.until)}`}. {event.text}
        </Line>
      );
    case "guardian":
      return (
        <div className="notice is-waiting">
          <Icon name="warning" />
          <div className="grow wrap">
            <span className="strong">Guardian: {event.step}</span> because of {event.detector}.{" "}
            <span className="muted">{event.evidence}</span>
          </div>
        </div>
      );
    case "error":
      return (
        <div className="notice is-failed">
          <Icon name="warning" />
          <div className="grow wrap">
            {event.text} {event.passing && <span className="muted">It goes on trying.</span>}
          </div>
        </div>
      );
    case "gap":
      return <Line tone="waiting">{event.bytes} bytes of its output were lost while no server listened.</Line>;
    case "raw":
      return (
        <details className="call">
          <summary>
            <span className="muted">Output</span>
            <code className="cut grow muted">{firstLine(event.text)}</code>
          </summary>
          <pre className="block inside" tabIndex={0}>
            {event.text}
          </pre>
        </details>
      );
    case "finished":
      return <Line tone="passed">Finished at {clock(event.at)}</Line>;
    default:
      return null;
  }
}

export function Conversation({ events, cut }: { readonly events: readonly RunEvent[]; readonly cut: boolean }): ReactNode {
  const [shown, setShown] = useState(SHOWN);
  const entries = entriesOf(events);
  const hidden = Math.max(0, entries.length - shown);
  return (
    <div className="conversation">
      {(hidden > 0 || cut) && (
        <div className="row">
          {hidden > 0 && (
            <button type="button" className="button small" onClick={() => setShown(shown + SHOWN)}>
              Show {Math.min(SHOWN, hidden)} earlier of {hidden}
            </button>
          )}
          {cut && <span className="muted small">The beginning is not kept in this page.</span>}
        </div>
      )}
      {entries.slice(hidden).map((entry) => (
        <div key={entry.key} className="entry">
          {"call" in entry ? <CallEntry {...entry.call} /> : <EventEntry event={entry.event} />}
        </div>
      ))}
    </div>
  );
}
