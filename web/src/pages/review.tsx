/** A change before it goes into reality: file by file, what is risky on top, with comments that go back to the agent as one message. */
import { useEffect, type ReactNode } from "react";
import type { Promotion } from "../../../src/base/schema/promotion.ts";
import type { PageProps } from "../app/pages.tsx";
import { Link, useAddress } from "../app/router.tsx";
import { Answered, Command, Empty, Section, Title } from "../parts/parts.tsx";
import { filesOf } from "../parts/patch.ts";
import { usePlan, usePlanAgain } from "../parts/plan.ts";
import { PlanWords, PromotionCard, PromotionState } from "../parts/promotion-card.tsx";
import { promotionTitle } from "../parts/rows.tsx";
import { State, toneOf } from "../parts/state.tsx";
import { plural } from "../parts/words.ts";
import { patch as readPatch } from "../server/client.ts";
import { FileCard, remarksOf, UNREMARKABLE, type FileComment, type Remarks } from "../review/file-card.tsx";
import { useKept } from "../review/kept.ts";
import { SendComments } from "../review/send-comments.tsx";
import { useAnswer, useAsked } from "../server/queries.ts";
import "../style/review.css";

/** Files change without an event. */
const LIVE_MS = 3_000;

function Files({
  sandbox,
  patch,
  remarks,
}: {
  readonly sandbox: string;
  readonly patch: string;
  readonly remarks: ReadonlyMap<string, Remarks>;
}): ReactNode {
  const [viewed, setViewed] = useKept<readonly string[]>(`viv-viewed-${sandbox}`, []);
  const [comments, setComments] = useKept<readonly FileComment[]>(`viv-comments-${sandbox}`, []);
  const weight = (path: string): number => {
    const { conflicts, risks } = remarks.get(path) ?? UNREMARKABLE;
    return conflicts.length > 0 ? 2 : Math.min(risks.length, 1);
  };
  const files = filesOf(patch).toSorted((one, other) => weight(other.path) - weight(one.path));
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
          remarks={remarks.get(file.path) ?? UNREMARKABLE}
          comments={comments}
          viewed={viewed}
          onViewed={(mark, on) => setViewed(on ? [...viewed, mark] : viewed.filter((one) => one !== mark))}
          onComments={setComments}
        />
      ))}
    </Section>
  );
}

/** The file that the address names is scrolled to, once it is there. */
function useNamedFile(ready: boolean): void {
  const { query } = useAddress();
  const path = query.get("file");
  useEffect(() => {
    if (ready && path !== null) document.getElementById(`file-${path}`)?.scrollIntoView();
  }, [ready, path]);
}

function Patch({ sandbox }: { readonly sandbox: string }): ReactNode {
  const query = useAsked(["diffSandbox", "patch", sandbox], (signal) => readPatch(sandbox, {}, signal), { every: LIVE_MS });
  const reality = useAnswer("staleness", { sandbox }, { every: LIVE_MS });
  const plan = usePlan({ sandbox });
  usePlanAgain(query.data);
  usePlanAgain(reality.data && JSON.stringify(reality.data.changes));
  const remarks = remarksOf(plan.data);
  useNamedFile(query.data !== undefined);
  return (
    <Answered query={query} what="the change">
      {(patch) => <Files sandbox={sandbox} patch={patch} remarks={remarks} />}
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

function isDone({ state }: Promotion): boolean {
  return state === "applied" || state === "undone";
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
                <Section title={isDone(promotion) ? "What it wrote" : "What it would write"} count={promotion.plan.files}>
                  <div className="card">
                    <div className="body">
                      <PlanWords plan={promotion.plan} most={200} done={isDone(promotion)} />
                    </div>
                  </div>
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
