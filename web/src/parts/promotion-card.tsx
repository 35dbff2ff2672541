/** A change on its way into reality: what it would do, promote, each stage with its evidence, undo. */
import { useEffect, useState, type ReactNode } from "react";
import type { Promotion, PromotionPlan } from "../../../src/base/schema/promotion.ts";
import { Link } from "../app/router.tsx";
import { useAct, useAnswer } from "../server/queries.ts";
import { AnswerButtons } from "./answer-buttons.tsx";
import { Ago, Command, Empty, Failure, Section } from "./parts.tsx";
import { usePlan, type PlanSource } from "./plan.ts";
import { State, StateShape, toneOf } from "./state.tsx";
import { duration, plural } from "./words.ts";

interface OfferProps {
  readonly source: PlanSource;
  /** The command that does the same. */
  readonly line: string;
  /** What to call that which is promoted. */
  readonly winner?: string | undefined;
}

/** A press on "Promote" is meant for what stood there before: after a change the button waits until a person can have seen it. */
const SETTLES_MS = 1_500;

/** Whether a value has stayed the same for a while; true for the first one. */
function useSettled(value: string | undefined): boolean {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    if (settled === undefined) return setSettled(value);
    const timer = setTimeout(() => setSettled(value), SETTLES_MS);
    return () => clearTimeout(timer);
  }, [value, settled]);
  return settled === undefined || settled === value;
}

/** A conflict in git's words, without its shouting. */
export function conflictWords({ kind, message }: PromotionPlan["conflicts"][number]): string {
  return `conflict (${kind}): ${message.replace(/^CONFLICT \([^)]*\): /, "")}`;
}

const SHOWN_CHANGES = 6;

interface PlanProps {
  readonly plan: PromotionPlan;
  /** Paths that are named, of all that there are. */
  readonly most?: number;
  /** Whether it has been carried out. */
  readonly done?: boolean;
}

/** Which files, so that nothing is promoted that was not named. */
function Changes({ plan, most }: { readonly plan: PromotionPlan; readonly most: number }): ReactNode {
  if (plan.files === 0) return null;
  return (
    <ul className="changes">
      {plan.changes.slice(0, most).map((change) => (
        <li key={change.path} className="row">
          <span className={`letter ${change.status}`} title={change.status}>
            {change.status.slice(0, 1).toUpperCase()}
          </span>
          <span className="sr-only">{change.status}</span>
          <code className="wrap">{change.path}</code>
        </li>
      ))}
      {plan.files > most && <li className="muted">and {plural(plan.files - most, "more file")}</li>}
    </ul>
  );
}

/** What a plan says that a person should know before it is carried out. */
export function PlanWords({ plan, most = SHOWN_CHANGES, done = false }: PlanProps): ReactNode {
  return (
    <div className="stack small">
      <p>
        {plan.files === 0
          ? "Nothing would change."
          : `${plural(plan.files, "file")} ${done ? "written or deleted" : "would be written or deleted"}.`}
        {plan.moved &&
          ` Reality moved in ${plural(plan.movedPaths, "path")} since the clone; ${
            plan.conflicts.length === 0 ? "the change was merged with it" : "the two can't be merged without you"
          }.`}
      </p>
      <Changes plan={plan} most={most} />
      {plan.conflicts.map((one) => (
        <div key={`${one.path} ${one.kind}`} className="notice is-failed wrap">
          <span>
            <code>{one.path}</code> {conflictWords(one)}
          </span>
        </div>
      ))}
      {plan.risks.map((one) => (
        <div key={`${one.path} ${one.kind}`} className="notice is-waiting wrap">
          <span>
            <code>{one.path}</code> {one.why}
          </span>
        </div>
      ))}
      {plan.notes.map((note) => (
        <p key={note} className="muted wrap">
          {note}
        </p>
      ))}
    </div>
  );
}

function Stages({ promotion }: { readonly promotion: Promotion }): ReactNode {
  return (
    <ul className="stages">
      {promotion.stages.map((stage) => (
        <li key={stage.name} className="small">
          <div className="row">
            <StateShape tone={toneOf(stage.state)} />
            <span className="strong">{stage.name}</span>
            <span className="muted wrap">
              {stage.state}
              {stage.reason === null ? "" : `: ${stage.reason}`}
            </span>
          </div>
          {stage.checks.map((check, index) => (
            <div key={`${check.command} ${index}`} className="row evidence">
              <StateShape tone={check.passed ? "passed" : "failed"} />
              <span className="sr-only">{check.passed ? "passed" : "failed"}</span>
              <code className="cut">{check.command}</code>
              <span className="muted number">{duration(check.wallMs)}</span>
            </div>
          ))}
        </li>
      ))}
    </ul>
  );
}

/** Undo happens at once: what it takes back can be promoted again. */
export function PromotionState({ promotion }: { readonly promotion: Promotion }): ReactNode {
  const undo = useAct("undoPromotion");
  const error = undo.error;
  const undone = undo.data;
  // A stage may also wait after an earlier one has been applied.
  const waiting = promotion.stages.find((stage) => stage.state === "waiting");
  return (
    <div className="stack">
      <div className="row wraps">
        <State tone={toneOf(promotion.state)}>{promotion.state}</State>
        <span className="grow wrap small">{promotion.reason ?? (promotion.state === "applied" ? "The change is in reality." : "")}</span>
        <span className="small muted">
          <Ago at={promotion.endedAt ?? promotion.createdAt} />
        </span>
      </div>
      <Stages promotion={promotion} />
      {promotion.branch !== null && (
        <p className="small wrap">
          Branch <code>{promotion.branch.name}</code>
          {promotion.branch.pullRequest === null ? "" : ` · ${promotion.branch.pullRequest}`}
        </p>
      )}
      {error !== null && <Failure error={error} />}
      {undone !== undefined && undone.state !== "applied" && <p className="small wrap">{undone.reason}</p>}
      <div className="row wraps">
        {promotion.state === "applied" && promotion.kind === "promotion" && (
          <>
            <button type="button" className="button" disabled={undo.isPending} onClick={() => undo.mutate({ promotion: promotion.id })}>
              {undo.isPending ? "Taking it back …" : "Undo"}
            </button>
            <Command line={`viv undo ${promotion.id}`} />
          </>
        )}
      </div>
      {waiting !== undefined && (
        <div className="stack approve">
          <p className="small">
            <span className="strong">{waiting.name}</span> goes on when a person allows it.{" "}
            <Link className="link" to={`/question/${promotion.id}`}>
              The whole question
            </Link>
          </p>
          <AnswerButtons question={{ id: promotion.id, kind: "promotion", always: null }} />
        </div>
      )}
    </div>
  );
}

function Offer({ source, line, winner }: OfferProps): ReactNode {
  const plan = usePlan(source);
  const promote = useAct("promote");
  /** The plan whose risks were looked at: another one has to be looked at anew. */
  const [looked, setLooked] = useState<string>();
  const settled = useSettled(plan.data?.hash);
  if (plan.error !== null) return <Failure error={plan.error} retry={() => void plan.refetch()} />;
  if (plan.data === undefined) return <p className="muted small">Planning what would change …</p>;
  const { conflicts, risks, files, hash } = plan.data;
  const risky = looked === hash;
  const blocked = conflicts.length > 0 || files === 0 || !settled;
  const name = winner === undefined ? "Promote" : `Promote ${winner}`;
  return (
    <div className="stack">
      <PlanWords plan={plan.data} />
      {promote.error !== null && <Failure error={promote.error} />}
      {risks.length > 0 && (
        <label className="row small">
          <input type="checkbox" checked={risky} onChange={(event) => setLooked(event.target.checked ? hash : undefined)} />I looked at what
          is risky
        </label>
      )}
      <div className="row wraps">
        <button
          type="button"
          className="button primary"
          disabled={blocked || promote.isPending || (risks.length > 0 && !risky)}
          onClick={() => promote.mutate({ ...source, hash, allowRisky: risky })}
        >
          {promote.isPending ? "Promoting: checks, then the files …" : name}
        </button>
        <Command line={line} />
      </div>
      {conflicts.length > 0 ? (
        <>
          <p className="small">Bring today's project into the sandbox, settle it there, and promote again.</p>
          {source.sandbox !== undefined && <Command line={line.replace(/^viv promote/, "viv refresh")} />}
        </>
      ) : (
        <p className="small muted">It can be undone afterwards.</p>
      )}
    </div>
  );
}

/** The newest promotion of a sandbox or an experiment, where there is one. */
function useNewest({ sandbox, experiment }: PlanSource): Promotion | undefined {
  const query = useAnswer("listPromotions", { all: true });
  return query.data?.promotions.find(
    (one) =>
      one.kind === "promotion" &&
      ((experiment !== undefined && one.experiment === experiment) || (sandbox !== undefined && one.sandbox === sandbox)),
  );
}

export function PromotionCard({ source, ready, line, winner }: OfferProps & { readonly ready: boolean }): ReactNode {
  const promotion = useNewest(source);
  const again = promotion !== undefined && ["undone", "failed", "discarded"].includes(promotion.state);
  return (
    <Section title="Into reality">
      <div className="card">
        {!ready && promotion === undefined ? (
          <Empty>There is nothing to promote yet. Once there is a winner, its change is shown here before it is written.</Empty>
        ) : (
          <div className="body stack">
            {promotion !== undefined && <PromotionState promotion={promotion} />}
            {ready && (promotion === undefined || again) && <Offer source={source} line={line} winner={winner} />}
          </div>
        )}
      </div>
    </Section>
  );
}
