/** A change before it goes into reality: file by file, what is risky on top, with comments that go back to the agent as one message. */
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState, type ReactNode } from "react";
import type { LineComment } from "../diff/diff-view.tsx";
import type { PageProps } from "../app/pages.tsx";
import { Link } from "../app/router.tsx";
import { Answered, Command, Empty, Failure, Section, Title } from "../parts/parts.tsx";
import { digest, filesOf, type FilePatch } from "../parts/patch.ts";
import { PlanWords, PromotionCard, PromotionState } from "../parts/promotion-card.tsx";
import { promotionTitle } from "../parts/rows.tsx";
import { State, toneOf } from "../parts/state.tsx";
import { plural } from "../parts/words.ts";
import { patch as readPatch } from "../server/client.ts";
import { useAct, useAnswer } from "../server/queries.ts";
import "../style/review.css";

const DiffView = lazy(() => import("../diff/diff-view.tsx"));

/** Files longer than this are folded until they are asked for. */
const LONG_LINES = 600;

interface FileComment extends LineComment {
  readonly path: string;
}

/** Kept in this browser until they are sent. */
function useKept<Value>(place: string, empty: Value): [Value, (value: Value) => void] {
  const [value, setValue] = useState<Value>(() => {
    const text = localStorage.getItem(place);
    return text === null ? empty : (JSON.parse(text) as Value);
  });
  const keep = (next: Value): void => {
    setValue(next);
    localStorage.setItem(place, JSON.stringify(next));
  };
  return [value, keep];
}

function CommentBox({
  comment,
  onText,
  onRemove,
}: {
  readonly comment: FileComment;
  readonly onText: (text: string) => void;
  readonly onRemove: () => void;
}): ReactNode {
  return (
    <div className="comment">
      <textarea
        className="field"
        rows={2}
        autoFocus={comment.text === ""}
        aria-label={`Comment on line ${comment.line}`}
        placeholder="What should the agent change here?"
        value={comment.text}
        onChange={(event) => onText(event.target.value)}
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

interface FileProps {
  readonly file: FilePatch;
  readonly risks: readonly string[];
  readonly comments: readonly FileComment[];
  readonly viewed: readonly string[];
  readonly onViewed: (mark: string, isViewed: boolean) => void;
  readonly onComments: (comments: readonly FileComment[]) => void;
}

function FileCard({ file, risks, comments, viewed, onViewed, onComments }: FileProps): ReactNode {
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
        {risks.length > 0 && <State tone="waiting">risky</State>}
        <span className="small muted">{file.status}</span>
        <span className="small number">
          <span className="is-passed">+{file.added}</span> <span className="is-failed">−{file.removed}</span>
        </span>
        <label className="row small">
          <input type="checkbox" checked={isViewed} onChange={(event) => onViewed(mark, event.target.checked)} />
          Viewed
        </label>
      </header>
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
                comment={{ ...comment, path: file.path }}
                onText={(text) => onComments(comments.map((one) => (one.id === comment.id ? { ...one, text } : one)))}
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

/** One message for all comments, with the place of each. */
function messageOf(comments: readonly FileComment[]): string {
  const lines = comments.map(
    ({ path, side, line, text }) => `- ${path}, line ${line}${side === "deletions" ? " (before your change)" : ""}: ${text.trim()}`,
  );
  return `Review of your change. Please look at these places:\n${lines.join("\n")}`;
}

function SendComments({
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
      <p className="small muted">{say.isSuccess ? "Your comments went to the agent." : "Press the number of a line to comment on it."}</p>
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

function Files({
  sandbox,
  patch,
  risky,
}: {
  readonly sandbox: string;
  readonly patch: string;
  readonly risky: ReadonlyMap<string, readonly string[]>;
}): ReactNode {
  const [viewed, setViewed] = useKept<readonly string[]>(`viv-viewed-${sandbox}`, []);
  const [comments, setComments] = useKept<readonly FileComment[]>(`viv-comments-${sandbox}`, []);
  const files = filesOf(patch).toSorted((one, other) => Number(risky.has(other.path)) - Number(risky.has(one.path)));
  if (files.length === 0) return <Empty>This sandbox has changed nothing in the project.</Empty>;
  const added = files.reduce((sum, file) => sum + file.added, 0);
  const removed = files.reduce((sum, file) => sum + file.removed, 0);
  return (
    <Section
      title={plural(files.length, "file")}
      aside={
        <span className="small number">
          <span className="is-passed">+{added}</span> <span className="is-failed">−{removed}</span>
        </span>
      }
    >
      <SendComments sandbox={sandbox} comments={comments} onSent={() => setComments([])} />
      <nav className="card" aria-label="Files of this change">
        <ul className="filelist small">
          {files.map((file) => (
            <li key={file.path}>
              <a
                href={`#file-${file.path}`}
                onClick={(event) => (event.preventDefault(), document.getElementById(`file-${file.path}`)?.scrollIntoView())}
              >
                <code className="wrap">{file.path}</code>
              </a>
            </li>
          ))}
        </ul>
      </nav>
      {files.map((file) => (
        <FileCard
          key={file.path}
          file={file}
          risks={risky.get(file.path) ?? []}
          comments={comments}
          viewed={viewed}
          onViewed={(mark, on) => setViewed(on ? [...viewed, mark] : viewed.filter((one) => one !== mark))}
          onComments={setComments}
        />
      ))}
    </Section>
  );
}

function Patch({ sandbox }: { readonly sandbox: string }): ReactNode {
  const query = useQuery({ queryKey: ["diffSandbox", "patch", sandbox], queryFn: ({ signal }) => readPatch(sandbox, signal) });
  const plan = useAnswer("planPromotion", { sandbox });
  const risky = new Map<string, string[]>();
  for (const { path, why } of plan.data?.risks ?? []) risky.set(path, [...(risky.get(path) ?? []), why]);
  return (
    <Answered query={query} what="the change">
      {(patch) => <Files sandbox={sandbox} patch={patch} risky={risky} />}
    </Answered>
  );
}

function OfSandbox({ reference }: { readonly reference: string }): ReactNode {
  const query = useAnswer("findSandbox", { sandbox: reference });
  return (
    <Answered query={query} what="the sandbox">
      {(box) => (
        <>
          <Title
            crumbs={[{ to: `/sandbox/${box.name}`, text: box.name }]}
            title={`Review ${box.name}`}
            state={<State tone={toneOf(box.state, box.outcome)}>{box.outcome ?? box.state}</State>}
          >
            <div className="row wraps small muted">
              <code>{box.project}</code>
              <Command line={`viv diff ${box.name} --patch`} />
            </div>
          </Title>
          <div className="columns">
            <Patch sandbox={box.id} />
            <aside className="aside">
              <PromotionCard source={{ sandbox: box.id }} ready line={`viv promote ${box.name}`} />
            </aside>
          </div>
        </>
      )}
    </Answered>
  );
}

function OfPromotion({ id }: { readonly id: string }): ReactNode {
  const query = useAnswer("inspectPromotion", { promotion: id });
  return (
    <Answered query={query} what="the promotion">
      {(promotion) => (
        <>
          <Title
            crumbs={[{ to: "/work?show=promotions", text: "Promotions" }]}
            title={promotionTitle(promotion)}
            state={<State tone={toneOf(promotion.state)}>{promotion.state}</State>}
          >
            <div className="row wraps small muted">
              <code>{promotion.project}</code>
              {promotion.experiment !== null && (
                <Link className="link" to={`/experiment/${promotion.experiment}`}>
                  Experiment
                </Link>
              )}
            </div>
          </Title>
          <div className="columns">
            <div className="stack">
              {promotion.plan !== null && (
                <Section title="What it wrote" count={promotion.plan.files}>
                  <div className="card">
                    <ul className="list small">
                      {promotion.plan.changes.slice(0, 500).map((change) => (
                        <li key={change.path} className="row" style={{ padding: "5px 14px" }}>
                          <code className="grow wrap">{change.path}</code>
                          <span className="muted">{change.status}</span>
                        </li>
                      ))}
                    </ul>
                  </div>
                  <PlanWords plan={promotion.plan} />
                </Section>
              )}
              {promotion.sandbox !== null && <Patch sandbox={promotion.sandbox} />}
            </div>
            <aside className="aside">
              <Section title="Into reality">
                <div className="card">
                  <div className="body">
                    <PromotionState promotion={promotion} />
                  </div>
                </div>
              </Section>
            </aside>
          </div>
        </>
      )}
    </Answered>
  );
}

export default function Review({ parts: [reference = ""] }: PageProps): ReactNode {
  return (
    <main className="page wide review">
      {reference.startsWith("prm") && reference.length > 20 ? <OfPromotion id={reference} /> : <OfSandbox reference={reference} />}
    </main>
  );
}
