/** What every adapter promises, over conversations with the real programs. */
import { describe, expect, test } from "vitest";
import { RunEvent } from "../../src/base/schema/run.ts";
import { Adapters } from "../../src/work/agents/adapters.ts";
import type { Adapter, Heard, SessionState } from "../../src/work/agents/adapter.ts";
import { recordedWrites, replay, shown, startOf, transcript, transcripts, type Entry } from "../support/transcript.ts";

const adapters = new Adapters({ "claude-acp": { protocol: "acp", command: ["claude-agent-acp"], env: {} } });
const RECORDED = {
  claude: "claude",
  codex: "codex",
  gemini: "gemini",
  opencode: "opencode",
  "claude-acp": "claude-acp",
  "pi-0.73": "pi",
  "pi-0.87": "pi",
};

function adapterNamed(name: string): Adapter {
  const adapter = adapters.of(name);
  if (adapter === undefined) throw new Error(`there is no agent ${name}`);
  return adapter;
}

/** Times of waits are told from now on. */
const timeless = (heard: readonly Heard[]): unknown =>
  JSON.parse(JSON.stringify(heard, (key, value: unknown) => (key === "until" ? null : value)));

function lines(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) => ("out" in entry ? [entry.out] : []));
}

const WRONG = [null, 42, -1, "x", "__proto__", "constructor", [], {}, [null], { a: { b: [] } }, true];

/** The line cut, and with each value of its first three levels replaced by one of another kind. */
function* spoilt(line: string): Generator<string> {
  yield line.slice(0, line.length / 2);
  yield `${line}}`;
  yield `[${line}]`;
  let count = 0;
  const paths: string[][] = [];
  const walk = (value: unknown, path: string[]): void => {
    if (path.length > 0) paths.push(path);
    if (path.length < 4 && typeof value === "object" && value !== null)
      for (const [key, inner] of Object.entries(value)) walk(inner, [...path, key]);
  };
  walk(JSON.parse(line), []);
  for (const path of paths) {
    const copy = JSON.parse(line) as Record<string, unknown>;
    let at = copy;
    for (const key of path.slice(0, -1)) at = at[key] as Record<string, unknown>;
    at[path.at(-1) ?? ""] = WRONG[count++ % WRONG.length];
    yield JSON.stringify(copy);
  }
}

function expectEvents(heard: readonly Heard[]): void {
  for (const each of heard) {
    if (!("event" in each)) continue;
    const parsed = RunEvent.safeParse({ ...each.event, sequence: 1, at: "2030-01-01T00:00:00.000Z" });
    // Ids of messages are short in transcripts.
    if (!parsed.success && each.event.type !== "message")
      throw new Error(`${JSON.stringify(each.event).slice(0, 300)}: ${parsed.error.message}`);
  }
}

describe.each(Object.entries(RECORDED))("%s", (recorded, name) => {
  const adapter = adapterNamed(name);

  test.each(transcripts(recorded))("writes the same as when %s was recorded", (scenario) => {
    const entries = transcript(recorded, scenario);
    expect(replay(adapter, entries).wrote).toEqual(recordedWrites(entries));
  });

  test.each(transcripts(recorded))("a session that is made anew after every line of %s hears the same", (scenario) => {
    const entries = transcript(recorded, scenario);
    const [once, handedOver] = [replay(adapter, entries), replay(adapter, entries, true)];
    expect(timeless(handedOver.heard)).toEqual(timeless(once.heard));
    expect(handedOver.wrote).toEqual(once.wrote);
    expect(handedOver.state).toEqual(once.state);
    expectEvents(once.heard);
  });

  test.each(transcripts(recorded))("each message of %s is settled once, and each turn that ended for good is told once", (scenario) => {
    const { heard } = replay(adapter, transcript(recorded, scenario));
    const settled = heard.flatMap((each) => ("delivered" in each ? [each.delivered] : "refused" in each ? [each.refused] : []));
    expect(settled).toEqual([...new Set(settled)]);
    const turns = shown(heard).filter((line) => line.startsWith("turn ") || line === "turnEnded");
    expect(turns.filter((line) => line === "turnEnded").length).toBeLessThanOrEqual(turns.filter((line) => line === "turn ended").length);
  });

  test.each(transcripts(recorded))("what waits for an answer in %s is listed again by the next session", (scenario) => {
    const entries = transcript(recorded, scenario);
    let waiting: Heard[] = [];
    const [first] = entries;
    const start = startOf({ conversation: first !== undefined && "conversation" in first ? first.conversation : null });
    let state: SessionState | undefined;
    for (const entry of entries) {
      const session = adapter.session(start, state);
      expect(session.pending()).toEqual(waiting);
      if ("out" in entry) waiting = [...waiting, ...session.line(entry.out).filter((each) => "request" in each)];
      if ("message" in entry) session.message(...entry.message);
      if ("answer" in entry) session.answer(...entry.answer);
      if ("interrupt" in entry) session.interrupt();
      const open = session.pending();
      waiting = waiting.filter((each) => open.some((other) => JSON.stringify(other) === JSON.stringify(each)));
      state = JSON.parse(JSON.stringify(session.state)) as SessionState;
    }
  });

  test.each(["run", "interrupt", "denied"])("spoilt lines of %s never make it throw, and every event is one of the schema", (scenario) => {
    const entries = transcript(recorded, scenario);
    const done: Entry[] = [];
    let largest = 0;
    for (const entry of entries) {
      if ("out" in entry) {
        const { state } = replay(adapter, done);
        for (const line of spoilt(entry.out)) {
          const session = adapter.session(startOf(), state);
          expectEvents(session.line(line));
          expectEvents(session.pending());
          session.interrupt();
          largest = Math.max(largest, JSON.stringify(session.state).length);
        }
      }
      done.push(entry);
    }
    expect(largest).toBeLessThan(64 * 1024);
  });

  test("a program that opens calls and questions without end does not make its state grow", () => {
    const entries = transcript(recorded, "run");
    const answered = entries.findIndex((entry) => "answer" in entry);
    // OpenCode asks nothing here: its plugin asks the gateway.
    const until = answered === -1 ? entries.length : answered;
    const opening = lines(entries.slice(0, until)).slice(answered === -1 ? 0 : -4);
    const session = adapter.session(startOf(), replay(adapter, entries.slice(0, until)).state);
    for (let count = 0; count < 300; count++)
      for (const line of opening)
        session.line(
          line
            .replaceAll("call_scripted_1_0", `call_${count}`)
            .replaceAll(/"(request_)?id":(?:0|"[^"]*")/g, `"$1id":"${"x".repeat(200)}${count}"`),
        );
    expect(session.pending().length > 1).toBe(answered !== -1);
    expect(JSON.stringify(session.state).length).toBeLessThan(256 * 1024);
  });

  test.each(["__proto__", "constructor", "toString"])("a call or a message that is called %s is one like any other", (id) => {
    const entries = transcript(recorded, "run");
    const named = JSON.parse(JSON.stringify(entries).replaceAll("call_scripted_1_0", id).replaceAll("msg_task", id)) as Entry[];
    // Claude Code gets a message by a uuid that is made of its id.
    const uuidIn = (all: readonly Entry[]): string => /"uuid":"([^"]+)"/.exec(replay(adapter, all).wrote.join(""))?.[1] ?? id;
    const renamed = JSON.parse(JSON.stringify(named).replaceAll(uuidIn(entries), uuidIn(named))) as Entry[];
    const heard = shown(replay(adapter, renamed).heard);
    expect(heard.map((line) => line.replace(`delivered ${id}`, "delivered msg_task"))).toEqual(shown(replay(adapter, entries).heard));
    expect(replay(adapter, renamed, true).heard).toEqual(replay(adapter, renamed).heard);
  });

  test("a line that is no message of the program is kept as it is", () => {
    for (const line of ["", "hello", "{", "[1]", "null", '"text"', "{}", '{"half":'])
      expect(adapter.session(startOf()).line(line)).toEqual([{ event: { type: "raw", stream: "stdout", text: line } }]);
  });

  const twice = transcripts(recorded).includes("doubled") ? ["doubled"] : [];
  test.each(twice)("what was written twice changes nothing in %s", (scenario) => {
    const plain = (which: string): string[] => shown(replay(adapter, transcript(recorded, which)).heard).filter((line) => line !== "raw");
    expect(plain(scenario)).toEqual(plain("run"));
  });
});
