import type { ReactNode } from "react";
import { Command } from "../parts/parts.tsx";

export function Login({ trouble }: { readonly trouble: string | undefined }): ReactNode {
  return (
    <main className="login card">
      <div className="stack">
        <div className="row">
          <img src="/icon.svg" alt="" width="24" height="24" />
          <h1>Vivarium</h1>
        </div>
        {trouble !== undefined && (
          <p className="is-failed" role="alert">
            {trouble}
          </p>
        )}
        <p>This browser is not logged in. On the machine where the server runs, type:</p>
        <div>
          <Command line="viv open" />
        </div>
        <p className="muted small">It prints a link that works once, for five minutes, and opens it where it can.</p>
      </div>
    </main>
  );
}
