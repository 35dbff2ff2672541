/** One file of a change under review: its diff, what is risky or in conflict, comments on its lines, and whether it was looked at. */
import { lazy, Suspense, useEffect, useState, type ReactNode } from "react";
import type { PromotionPlan } from "../../../src/base/schema/promotion.ts";
import type { LineComment } from "../diff/diff-view.tsx";
import { digest, type FilePatch } from "../parts/patch.ts";
import { conflictWords } from "../parts/promotion-card.tsx";
import { State } from "../parts/state.tsx";
import { plural } from "../parts/words.ts";
import "../style/diff.css";

const DiffView = lazy(() => import("../diff/diff-view.tsx"));

/** Files longer than this are folded until they are asked for. */
const LONG_LINES = 600;

export interface FileComment extends LineComment {
  readonly path: string;
}

/** The first line of the new file that the change touches. */
function firstLineOf(patch: string): number {
  let line = 1;
  for (const text of patch.split("\n")) {
    const head = /^@@ -\d+(?:,\d+)? \+(\d+)/.exec(text);
    if (head !== null) line = Number(head[1]);
    else if (/^\+(?!\+\+ )/.test(text)) return line;
    else if (text.startsWith(" ")) line += 1;
  }
  return line;
}

function CommentBox({
  comment,
  onChange,
  onRemove,
}: {
  readonly comment: LineComment;
  readonly onChange: (change: Partial<Pick<LineComment, "line" | "text">>) => void;
  readonly onRemove: () => void;
}): ReactNode {
  return (
    <div className="comment">
      <label className="small muted line-number">
        Line
        <input
          className="field number"
          inputMode="numeric"
          value={comment.line}
          onChange={(event) => onChange({ line: Math.max(1, Number(event.target.value.replaceAll(/\D/g, "")) || 1) })}
        />
      </label>
      <textarea
        className="field"
        rows={2}
        autoFocus={comment.text === ""}
        aria-label={`Comment on line ${comment.line}`}
        placeholder="What should the agent change here?"
        value={comment.text}
        onChange={(event) => onChange({ text: event.target.value })}
      />
      <button type="button" className="button small plain" onClick={onRemove}>
        Remove
      </button>
    </div>
  );
}

function useDigest(text: string): string {
  const [found, setFound] = useState("");
  useEffect(() => {
    void digest(text).then(setFound);
  }, [text]);
  return found;
}

/** What the plan says about a path, besides its lines. */
export interface Remarks {
  readonly risks: readonly string[];
  readonly conflicts: readonly string[];
}

export const UNREMARKABLE: Remarks = { risks: [], conflicts: [] };

export function remarksOf(plan: PromotionPlan | undefined): ReadonlyMap<string, Remarks> {
  const found = new Map<string, Remarks>();
  const at = (path: string): Remarks => found.get(path) ?? UNREMARKABLE;
  for (const { path, why } of plan?.risks ?? []) found.set(path, { ...at(path), risks: [...at(path).risks, why] });
  for (const conflict of plan?.conflicts ?? [])
    found.set(conflict.path, { ...at(conflict.path), conflicts: [...at(conflict.path).conflicts, conflictWords(conflict)] });
  return found;
}

interface FileProps {
  readonly file: FilePatch;
  readonly remarks: Remarks;
  readonly comments: readonly FileComment[];
  readonly viewed: readonly string[];
  readonly onViewed: (mark: string, isViewed: boolean) => void;
  readonly onComments: (comments: readonly FileComment[]) => void;
}

export function FileCard({ file, remarks: { risks, conflicts }, comments, viewed, onViewed, onComments }: FileProps): ReactNode {
  const mark = `${file.path} ${useDigest(file.text)}`;
  const isViewed = viewed.includes(mark);
  const [open, setOpen] = useState(file.added + file.removed <= LONG_LINES);
  const own = comments.filter(({ path }) => path === file.path);
  const add = (side: LineComment["side"], line: number): void => {
    if (own.some((one) => one.side === side && one.line === line)) return;
    onComments([...comments, { id: crypto.randomUUID(), path: file.path, side, line, text: "" }]);
  };
  const shows = open && !isViewed;
  return (
    <article className="card file" id={`file-${file.path}`} data-row tabIndex={-1}>
      <header>
        <button
          type="button"
          className="button plain small"
          aria-expanded={shows}
          onClick={() => setOpen(!shows)}
          disabled={isViewed}
          aria-label={`${shows ? "Fold" : "Unfold"} ${file.path}`}
        >
          {shows ? "▾" : "▸"}
        </button>
        <code className="grow wrap">{file.path}</code>
        {conflicts.length > 0 && <State tone="failed">conflict</State>}
        {risks.length > 0 && <State tone="waiting">risky</State>}
        <span className="small muted">{file.status}</span>
        <span className="small number">
          <span className="is-passed">+{file.added}</span> <span className="is-failed">−{file.removed}</span>
        </span>
        <button
          type="button"
          className="button plain small"
          disabled={!shows || file.binary}
          onClick={() => add("additions", firstLineOf(file.text))}
        >
          Comment
        </button>
        <label className="row small">
          <input type="checkbox" checked={isViewed} onChange={(event) => onViewed(mark, event.target.checked)} />
          Viewed
        </label>
      </header>
      {conflicts.map((message) => (
        <p key={message} className="small note conflict wrap">
          {message}
        </p>
      ))}
      {[...risks, ...file.notes].map((note) => (
        <p key={note} className="small note wrap">
          {note}
        </p>
      ))}
      {shows && !file.binary && file.added + file.removed > 0 && (
        <Suspense fallback={<p className="empty">Loading the diff …</p>}>
          <DiffView
            patch={file.text}
            comments={own}
            onLine={add}
            renderComment={(comment) => (
              <CommentBox
                comment={comment}
                onChange={(change) => onComments(comments.map((one) => (one.id === comment.id ? { ...one, ...change } : one)))}
                onRemove={() => onComments(comments.filter((one) => one.id !== comment.id))}
              />
            )}
          />
        </Suspense>
      )}
      {!open && !isViewed && <p className="empty">{plural(file.added + file.removed, "line")} changed. Unfold it to see them.</p>}
    </article>
  );
}
