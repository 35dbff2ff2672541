/** JupyterLab of a sandbox, in a frame of another origin than this page. */
import { useState, type ReactNode } from "react";
import type { OutputOf } from "../../../src/base/schema/contracts.ts";
import { Command, Failure } from "../parts/parts.tsx";
import { call } from "../server/client.ts";
import { session } from "../server/session.ts";
import { openTab, PreviewFrame } from "./frame.tsx";

function opener(sandbox: string, frame: boolean): () => Promise<OutputOf<"openNotebook">> {
  const key = session()?.key;
  return () => call("openNotebook", { sandbox, frame, ...(key === undefined ? {} : { key }) });
}

export default function Lab({ sandbox, name }: { readonly sandbox: string; readonly name: string }): ReactNode {
  const [error, setError] = useState<unknown>();
  return (
    <div className="stack">
      <div className="row wraps">
        <button type="button" className="button" onClick={() => void openTab(opener(sandbox, false)).catch(setError)}>
          Open in a tab
        </button>
        <Command line={`viv notebook ${name}`} />
      </div>
      {error !== undefined && <Failure error={error} />}
      <PreviewFrame title={`JupyterLab in ${name}`} stamp={sandbox} open={opener(sandbox, true)} large />
    </div>
  );
}
