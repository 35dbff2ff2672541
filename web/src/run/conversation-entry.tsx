/** What an agent said or did, as one entry; calls of tools are folded. All of it is text of the agent's. */
import type { ReactNode } from "react";
import type { RunEvent } from "../../../src/base/schema/run.ts";
import type { CallEntry as Call, Entry } from "../server/run-log.ts";
import { Icon, type IconName } from "../parts/icons.tsx";
import { StateShape, type Tone } from "../parts/state.tsx";
import { clock, duration, firstLine, plural } from "../parts/words.ts";
import "../style/conversation.css";

type Of<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;

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

/** A call that has nothing but a command or a query is that text; others are shown whole. */
function inputText(input: unknown): string {
  if (typeof input === "string") return input;
  const values = typeof input === "object" && input !== null ? Object.values(input) : [];
  return values.length === 1 && typeof values[0] === "string" ? values[0] : JSON.stringify(input, null, 2);
}

function CallEntry({ call, result }: Pick<Call, "call" | "result">): ReactNode {
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
          {inputText(call.input)}
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

export function ConversationEntry({ entry }: { readonly entry: Entry }): ReactNode {
  return "call" in entry ? <CallEntry call={entry.call} result={entry.result} /> : <EventEntry event={entry.event} />;
}
