/** JupyterLab of a sandbox. It has a tab to itself: many browsers refuse frames of other sites the storage that it needs. */
import { useState, type ReactNode } from "react";
import type { OutputOf } from "../../../src/base/schema/contracts.ts";
import { Command, Failure, Section } from "../parts/parts.tsx";
import { call } from "../server/client.ts";
import { session } from "../server/session.ts";
import { openTab } from "./frame.tsx";

/** Starts it, if it does not run; the link lets this browser in once. */
export function openLab(sandbox: string): Promise<OutputOf<"openNotebook">> {
  const key = session()?.key;
  return call("openNotebook", { sandbox, ...(key === undefined ? {} : { key }) });
}

export default function Lab({ sandbox, name }: { readonly sandbox: string; readonly name: string }): ReactNode {
  const [state, setState] = useState<"idle" | "starting" | { readonly error: unknown }>("idle");
  const open = async (): Promise<void> => {
    setState("starting");
    try {
      await openTab(() => openLab(sandbox));
      setState("idle");
    } catch (error) {
      setState({ error });
    }
  };
  return (
    <Section title="JupyterLab">
      <div className="card">
        <div className="body stack">
          <p className="muted">
            Notebooks, consoles and terminals, with server and kernels inside {name}. Kernels go on when the tab is closed.
          </p>
          <div className="row wraps">
            <button type="button" className="button primary" disabled={state === "starting"} onClick={() => void open()}>
              {state === "starting" ? "Starting JupyterLab …" : "Open JupyterLab"}
            </button>
            <Command line={`viv notebook ${name}`} />
          </div>
          {typeof state === "object" && <Failure error={state.error} retry={() => void open()} />}
        </div>
      </div>
    </Section>
  );
}
