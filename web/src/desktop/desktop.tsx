/** The desktop of a sandbox. A person looks at it until they take over; the server holds that, not this page. */
import RFB from "@novnc/novnc";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { VivError } from "../../../src/base/schema/errors.ts";
import { Command, Failure } from "../parts/parts.tsx";
import { State } from "../parts/state.tsx";
import { screen } from "../server/client.ts";
import { useAct, useAnswer } from "../server/queries.ts";
import { ScreenChannel } from "./screen-channel.ts";
import "../style/desktop.css";

interface DesktopProps {
  readonly sandbox: string;
  readonly name: string;
}

type Connection = { readonly kind: "connecting" } | { readonly kind: "shown" } | { readonly kind: "ended"; readonly why: string };

/** Draws the screen into an element, until it is closed. */
function show(
  place: HTMLElement,
  { sandbox, control }: { sandbox: string; control: boolean },
  tell: (connection: Connection) => void,
): () => void {
  let rfb: RFB | undefined;
  let closed = false;
  const work = async (): Promise<void> => {
    const channel = await screen(sandbox, control);
    if (closed) return channel.close();
    rfb = new RFB(place, new ScreenChannel(channel), { shared: true });
    rfb.viewOnly = !control;
    rfb.scaleViewport = true;
    rfb.background = "transparent";
    rfb.addEventListener("connect", () => {
      tell({ kind: "shown" });
      if (control) rfb?.focus();
    });
    rfb.addEventListener("disconnect", () => {
      rfb = undefined;
      if (!closed) tell({ kind: "ended", why: "The connection to the screen has ended." });
    });
  };
  work().catch((error: unknown) => tell({ kind: "ended", why: error instanceof Error ? error.message : String(error) }));
  return () => {
    closed = true;
    rfb?.disconnect();
  };
}

function Screen({ sandbox, name }: DesktopProps): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const [control, setControl] = useState(false);
  const [again, setAgain] = useState(0);
  const [connection, setConnection] = useState<Connection>({ kind: "connecting" });
  const close = useAct("closeDesktop");
  useEffect(() => {
    if (place.current === null) return undefined;
    setConnection({ kind: "connecting" });
    return show(place.current, { sandbox, control }, setConnection);
  }, [sandbox, control, again]);
  return (
    <div className="stack">
      <div className="row wraps">
        <State tone={connection.kind === "shown" ? (control ? "waiting" : "running") : connection.kind === "ended" ? "failed" : "stopped"}>
          {connection.kind === "connecting" ? "connecting" : connection.kind === "ended" ? "ended" : control ? "you have it" : "you look"}
        </State>
        <button type="button" className={control ? "button small" : "button small primary"} onClick={() => setControl(!control)}>
          {control ? "Give back" : "Take over"}
        </button>
        <span className="small muted grow desktop-words">
          {control ? "Programs wait until you give keys and pointer back." : "Programs have keys and pointer."}
        </span>
        {connection.kind === "ended" && (
          <button type="button" className="button small" onClick={() => setAgain(again + 1)}>
            Connect again
          </button>
        )}
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
      {connection.kind === "ended" && <p className="muted small">{connection.why}</p>}
      {close.error !== null && <Failure error={close.error} />}
      <div className="desktop-screen" ref={place} data-connection={connection.kind} aria-label={`Screen of ${name}`} role="application" />
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
