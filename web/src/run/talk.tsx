/** The box to talk to a run: steer, queue or interrupt, with the fate of each message. */
import { useState, type FormEvent, type KeyboardEvent, type ReactNode } from "react";
import type { Run, RunMessage } from "../../../src/base/schema/run.ts";
import { Command, Failure } from "../parts/parts.tsx";
import { State, type Tone } from "../parts/state.tsx";
import { firstLine, plural } from "../parts/words.ts";
import { useAct, useAnswer } from "../server/queries.ts";

type Way = "steer" | "after-turn" | "interrupt";

const WAYS: readonly { readonly way: Way; readonly text: string; readonly says: string; readonly flags: string }[] = [
  { way: "steer", text: "Steer", says: "It reads this at its next tool call.", flags: "" },
  { way: "after-turn", text: "Queue", says: "It reads this when its turn has ended.", flags: " --after-turn" },
  { way: "interrupt", text: "Interrupt", says: "What it does now ends, and it goes on with this.", flags: " --urgent" },
];

const SHOWN_FATES = 3;

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

export function Talk({ run }: { readonly run: Run }): ReactNode {
  const [text, setText] = useState("");
  const [way, setWay] = useState<Way>("steer");
  const [all, setAll] = useState(false);
  const say = useAct("sayToRun");
  const interrupt = useAct("interruptRun");
  const stop = useAct("stopRun");
  const messages = useAnswer("listRunMessages", { run: run.id }, { every: 2_000 });
  const own = (messages.data?.messages ?? []).filter(({ from }) => from === "person");
  const chosen = WAYS.find((one) => one.way === way);
  const send = async (): Promise<void> => {
    if (text.trim() === "" || say.isPending) return;
    await say.mutateAsync({ run: run.id, text, way: way === "interrupt" ? "urgent" : way });
    setText("");
    // Once the message is kept: a run whose turn ends while no message waits is over, and takes none.
    if (way === "interrupt") await interrupt.mutateAsync({ run: run.id });
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
          {(all ? own : own.slice(-SHOWN_FATES)).map((message) => (
            <Fate key={message.id} message={message} />
          ))}
          {own.length > SHOWN_FATES && (
            <button type="button" className="button plain small" onClick={() => setAll(!all)}>
              {all ? "Only the last ones" : `The fate of ${plural(own.length - SHOWN_FATES, "earlier message")}`}
            </button>
          )}
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
