/** Comments go back to the agent as one message. */
import type { ReactNode } from "react";
import { Command, Failure } from "../parts/parts.tsx";
import { plural } from "../parts/words.ts";
import { useAct, useAnswer } from "../server/queries.ts";
import type { FileComment } from "./file-card.tsx";

/** One message for all comments, with the place of each. */
function messageOf(comments: readonly FileComment[]): string {
  const lines = comments.map(
    ({ path, side, line, text }) => `- ${path}, line ${line}${side === "deletions" ? " (before your change)" : ""}: ${text.trim()}`,
  );
  return `Review of your change. Please look at these places:\n${lines.join("\n")}`;
}

export function SendComments({
  sandbox,
  comments,
  onSent,
}: {
  readonly sandbox: string;
  readonly comments: readonly FileComment[];
  readonly onSent: () => void;
}): ReactNode {
  const runs = useAnswer("listRuns", { all: true });
  const say = useAct("sayToRun");
  const run = runs.data?.runs.find((one) => one.sandbox === sandbox && one.endedAt === null);
  const written = comments.filter(({ text }) => text.trim() !== "");
  if (written.length === 0)
    return (
      <p className="small muted">
        {say.isSuccess
          ? "Your comments went to the agent."
          : "Press the number of a line to comment on it, or “Comment” at the head of a file."}
      </p>
    );
  const send = async (): Promise<void> => {
    if (run === undefined) return;
    await say.mutateAsync({ run: run.id, text: messageOf(written), way: "steer" });
    onSent();
  };
  return (
    <div className="stack">
      {say.error !== null && <Failure error={say.error} />}
      <button
        type="button"
        className="button primary"
        disabled={run === undefined || say.isPending}
        onClick={() => void send().catch(() => undefined)}
      >
        Send {plural(written.length, "comment")} to the agent
      </button>
      {run === undefined ? (
        <>
          <p className="small muted">No agent works in this sandbox now. Copy the comments into a new task:</p>
          <Command line={`viv task --from ${sandbox} '${messageOf(written).replaceAll("'", "'\\''")}'`} />
        </>
      ) : (
        <p className="small muted">As one message, at its next tool call.</p>
      )}
    </div>
  );
}
