/** A port of a sandbox beside the rest of its page: which ports listen, and what one of them shows. */
import { useState, type FormEvent, type ReactNode } from "react";
import type { OutputOf } from "../../../src/base/schema/contracts.ts";
import { go } from "../app/router.tsx";
import { Command, Empty, Failure, Section } from "../parts/parts.tsx";
import { call } from "../server/client.ts";
import { useAnswer } from "../server/queries.ts";
import { session } from "../server/session.ts";
import { openTab, PreviewFrame } from "./frame.tsx";

/** Programs come and go inside without an event. */
const LOOK_MS = 3_000;

interface PreviewProps {
  readonly sandbox: string;
  readonly name: string;
  /** The port of the address, if it has one. */
  readonly door: string | null;
  /** Address of the page that shows this one, with `door=` to follow. */
  readonly address: string;
}

function opener(sandbox: string, port: number, path: string, frame: boolean): () => Promise<OutputOf<"openPreview">> {
  const key = session()?.key;
  return () => call("openPreview", { sandbox, port, path, frame, ...(key === undefined ? {} : { key }) });
}

function portOf(text: string | null): number | undefined {
  return text !== null && /^[1-9][0-9]{0,4}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined;
}

function Ports({
  ports,
  chosen,
  choose,
}: {
  ports: readonly number[];
  chosen: number | undefined;
  choose: (port: number) => void;
}): ReactNode {
  return (
    <div className="row wraps" role="group" aria-label="Ports that listen inside">
      {ports.map((port) => (
        <button key={port} type="button" className="button small" aria-pressed={port === chosen} onClick={() => choose(port)}>
          {port}
        </button>
      ))}
    </div>
  );
}

/** The whole pane, on the sandbox's own page. */
export default function Preview({ sandbox, name, door, address }: PreviewProps): ReactNode {
  const listening = useAnswer("listPorts", { sandbox }, { every: LOOK_MS });
  const ports = listening.data?.ports ?? [];
  const port = portOf(door) ?? ports[0];
  const [path, setPath] = useState("/");
  const [shown, setShown] = useState("/");
  const [stamp, setStamp] = useState(0);
  const [tabError, setTabError] = useState<unknown>();
  const choose = (chosen: number): void => go(`${address}&door=${chosen}`, { replace: true });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const said = new FormData(event.currentTarget).get("port");
    const wanted = portOf(typeof said === "string" ? said : null);
    if (wanted !== undefined && wanted !== port) choose(wanted);
    setShown(path.startsWith("/") ? path : `/${path}`);
    setStamp(stamp + 1);
  };
  return (
    <div className="stack">
      <form className="row wraps preview-bar" onSubmit={submit}>
        <label className="row">
          <span className="small muted">Port</span>
          <input
            key={port}
            className="field preview-port"
            name="port"
            inputMode="numeric"
            pattern="[1-9][0-9]{0,4}"
            defaultValue={port}
            required
          />
        </label>
        <label className="row grow">
          <span className="small muted">Page</span>
          <input className="field grow" value={path} spellCheck={false} onChange={(event) => setPath(event.target.value)} />
        </label>
        <button type="submit" className="button">
          {stamp === 0 ? "Show" : "Show again"}
        </button>
        {port !== undefined && (
          <button type="button" className="button" onClick={() => void openTab(opener(sandbox, port, shown, false)).catch(setTabError)}>
            Open in a tab
          </button>
        )}
      </form>
      {ports.length > 1 && <Ports ports={ports} chosen={port} choose={choose} />}
      {listening.error !== null && <Failure error={listening.error} />}
      {tabError !== undefined && <Failure error={tabError} />}
      {port === undefined ? (
        <Empty command={`viv exec ${name} -- npm run dev`}>Nothing listens inside yet. Start a program that does, for example:</Empty>
      ) : (
        <>
          <PreviewFrame
            title={`port ${port} of ${name}`}
            stamp={`${sandbox} ${port} ${shown} ${stamp}`}
            open={opener(sandbox, port, shown, true)}
            large
          />
          <div className="row wraps">
            <Command line={`viv port ${name} ${port} --open`} />
            <span className="small muted">Some browsers refuse storage to pages in frames: then open it in a tab.</span>
          </div>
        </>
      )}
    </div>
  );
}

/** Beside a run: what its agent serves, without leaving the conversation. Nothing is shown while nothing listens. */
export function PreviewSection({ sandbox }: { readonly sandbox: string }): ReactNode {
  const listening = useAnswer("listPorts", { sandbox }, { every: LOOK_MS });
  const [chosen, setChosen] = useState<number>();
  const ports = listening.data?.ports ?? [];
  if (ports.length === 0) return null;
  const port = chosen !== undefined && ports.includes(chosen) ? chosen : undefined;
  return (
    <Section title="Preview" count={ports.length}>
      <div className="card">
        <div className="body stack">
          <Ports ports={ports} chosen={port} choose={(one) => setChosen(one === chosen ? undefined : one)} />
          {port === undefined ? (
            <p className="small muted">Ports that listen inside: choose one to see it here.</p>
          ) : (
            <>
              <PreviewFrame title={`port ${port}`} stamp={`${sandbox} ${port}`} open={opener(sandbox, port, "/", true)} />
              <button type="button" className="button small" onClick={() => void openTab(opener(sandbox, port, "/", false))}>
                Open in a tab
              </button>
            </>
          )}
        </div>
      </div>
    </Section>
  );
}
