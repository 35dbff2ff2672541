/** The desktop of a sandbox. A person looks at it until they take over; the server holds that, not this page. */
import { useEffect, useRef, useState, type ReactNode, type RefObject } from "react";
import type { DesktopHolder } from "../../../src/base/schema/desktop.ts";
import { VivError } from "../../../src/base/schema/errors.ts";
import { Command, Failure } from "../parts/parts.tsx";
import { State, type Tone } from "../parts/state.tsx";
import { live } from "../server/live.ts";
import { useAct, useAnswer } from "../server/queries.ts";
import { DesktopClipboard } from "./clipboard.tsx";
import { show, type Connection, type Shown } from "./show.ts";
import "../style/desktop.css";

interface DesktopProps {
  readonly sandbox: string;
  readonly name: string;
}

/** What the page asks for: to look, to take over, or to have control again after a break unless another person has it. */
interface Wish {
  readonly control: "none" | "take" | "if-free";
  readonly attempt: number;
}

const AGAIN_MS = 1_500;

interface Words {
  readonly tone: Tone;
  readonly state: string;
  readonly more: string;
}

function wordsOf(connection: Connection, holder: DesktopHolder, wasTaken: boolean): Words {
  if (connection.kind === "connecting") return { tone: "stopped", state: "connecting", more: "" };
  if (connection.kind === "ended")
    return { tone: "failed", state: "not connected", more: `${connection.why} The page connects again by itself.` };
  if (holder === "you") return { tone: "waiting", state: "you have it", more: "Programs wait until you give keys and pointer back." };
  if (holder === "programs") return { tone: "running", state: "you look", more: "Programs have keys and pointer." };
  const taken = wasTaken ? "Another person took over from you." : "Another person has keys and pointer.";
  return { tone: "running", state: "you look", more: `${taken} Programs wait.` };
}

/** The screen as it is shown now, and what is known of it. */
function useScreen(sandbox: string, place: RefObject<HTMLDivElement | null>) {
  const [wish, setWish] = useState<Wish>({ control: "none", attempt: 0 });
  const [connection, setConnection] = useState<Connection>({ kind: "connecting" });
  const [holder, setHolder] = useState<DesktopHolder>("programs");
  const [wasTaken, setWasTaken] = useState(false);
  const [copied, setCopied] = useState("");
  const [fits, setFits] = useState(false);
  const shown = useRef<Shown>(undefined);
  useEffect(() => {
    if (place.current === null) return undefined;
    let has: DesktopHolder = wish.control === "none" ? "programs" : "you";
    let timer: number | undefined;
    setConnection({ kind: "connecting" });
    // What this page had before a break it gets back, unless another person has taken it meanwhile.
    const again = (): void => setWish(({ attempt }) => ({ control: has === "you" ? "if-free" : "none", attempt: attempt + 1 }));
    const made = show(place.current, sandbox, wish.control, {
      connection: (now) => {
        setConnection(now);
        if (now.kind === "ended") timer = window.setTimeout(() => live.state.kind === "live" && again(), AGAIN_MS);
      },
      holder: (now) => {
        const loses = has === "you";
        setWasTaken((before) => now === "person" && (loses || before));
        has = now;
        setHolder(now);
      },
      copied: setCopied,
    });
    made.fit(fits);
    shown.current = made;
    const unlisten = live.onReturn(again);
    return () => {
      unlisten();
      clearTimeout(timer);
      made.close();
    };
    // Whether it fits is told to the screen that is there, without a new connection.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [sandbox, wish, place]);
  return {
    connection,
    holder,
    wasTaken,
    copied,
    fits,
    fit: (on: boolean) => {
      setFits(on);
      shown.current?.fit(on);
    },
    paste: (text: string) => shown.current?.paste(text),
    ask: (control: "none" | "take") => setWish(({ attempt }) => ({ control, attempt: attempt + 1 })),
  };
}

function Screen({ sandbox, name }: DesktopProps): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const { connection, holder, wasTaken, copied, fits, fit, paste, ask } = useScreen(sandbox, place);
  const close = useAct("closeDesktop");
  const words = wordsOf(connection, holder, wasTaken);
  const hasIt = connection.kind === "shown" && holder === "you";
  return (
    <div className="stack">
      <div className="row wraps">
        <State tone={words.tone}>{words.state}</State>
        <button type="button" className={hasIt ? "button small" : "button small primary"} onClick={() => ask(hasIt ? "none" : "take")}>
          {hasIt ? "Give back" : "Take over"}
        </button>
        {hasIt && (
          <label className="row small" title={`viv desktop ${name} --size WIDTHxHEIGHT`}>
            <input type="checkbox" checked={fits} onChange={({ target }) => fit(target.checked)} />
            As large as it is here
          </label>
        )}
        <span className="small muted grow desktop-words" role="status">
          {words.more}
        </span>
        <button
          type="button"
          className="button small danger"
          title={`viv desktop ${name} --close`}
          disabled={close.isPending}
          onClick={() => close.mutate({ sandbox })}
        >
          Close the desktop
        </button>
      </div>
      {close.error !== null && <Failure error={close.error} />}
      <div className="desktop-screen" ref={place} data-connection={connection.kind} aria-label={`Screen of ${name}`} role="application" />
      {hasIt && <DesktopClipboard copied={copied} paste={paste} />}
      <Command line={`viv desktop ${name} --screenshot now.png`} />
    </div>
  );
}

function NotStarted({ sandbox, name }: DesktopProps): ReactNode {
  const open = useAct("openDesktop");
  const start = (browser: boolean): void => open.mutate({ sandbox, ...(browser ? { browser: "" } : {}) });
  return (
    <div className="stack">
      <p>This sandbox has no desktop yet. It takes a moment to start.</p>
      <div className="row wraps">
        <button type="button" className="button primary" disabled={open.isPending} onClick={() => start(false)}>
          {open.isPending ? "Starting …" : "Start the desktop"}
        </button>
        <button type="button" className="button" disabled={open.isPending} onClick={() => start(true)}>
          With a browser
        </button>
      </div>
      {open.error !== null && <Failure error={open.error} />}
      <Command line={`viv desktop ${name}`} />
    </div>
  );
}

export default function SandboxDesktop(props: DesktopProps): ReactNode {
  const desktop = useAnswer("inspectDesktop", { sandbox: props.sandbox }, { every: 5_000 });
  if (desktop.error instanceof VivError && desktop.error.code === "not_found") return <NotStarted {...props} />;
  if (desktop.error !== null && desktop.data === undefined) return <Failure error={desktop.error} retry={() => void desktop.refetch()} />;
  if (desktop.data === undefined) return <p className="muted">Looking for the desktop …</p>;
  return <Screen {...props} />;
}
