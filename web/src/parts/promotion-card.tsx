/** A change on its way into reality: what it would do, promote, each stage with its evidence, undo. */
import { useState, type ReactNode } from "react";
import type { InputOf } from "../../../src/base/schema/contracts.ts";
import type { Promotion, PromotionPlan } from "../../../src/base/schema/promotion.ts";
import { Link } from "../app/router.tsx";
import { useAct, useAnswer } from "../server/queries.ts";
import { Ago, Command, Empty, Failure, Section } from "./parts.tsx";
import { State, StateShape, toneOf } from "./state.tsx";
import { plural } from "./words.ts";

type Source = Pick<InputOf<"planPromotion">, "sandbox" | "experiment">;

/** What a plan says that a person should know before it is carried out. */
export function PlanWords({ plan }: { readonly plan: PromotionPlan }): ReactNode {
  return (
    <div className="stack small">
      <p>
        {plan.files === 0 ? "Nothing would change." : `${plural(plan.files, "file")} would be written or deleted.`}
        {plan.moved && ` Reality moved in ${plural(plan.movedPaths, "path")} since the clone; the change was merged with it.`}
      </p>
      {plan.conflicts.map((one) => (
        <div key={`${one.path} ${one.kind}`} className="notice is-failed wrap">
          <span>
            <code>{one.path}</code> conflict: {one.message}
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
        <li key={stage.name} className="row small">
          <StateShape tone={toneOf(stage.state)} />
          <span className="strong">{stage.name}</span>
          <span className="muted wrap">
            {stage.state}
            {stage.reason === null ? "" : `: ${stage.reason}`}
            {stage.checks.length > 0 &&
              ` · ${stage.checks.filter((check) => check.passed).length} of ${plural(stage.checks.length, "check")} passed`}
          </span>
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
        {promotion.state === "waiting" && (
          <Link className="button primary" to={`/question/${promotion.id}`}>
            Answer its question
          </Link>
        )}
      </div>
    </div>
  );
}

function Offer({ source, line }: { readonly source: Source; readonly line: string }): ReactNode {
  const plan = useAnswer("planPromotion", source);
  const promote = useAct("promote");
  const [risky, setRisky] = useState(false);
  if (plan.error !== null) return <Failure error={plan.error} retry={() => void plan.refetch()} />;
  if (plan.data === undefined) return <p className="muted small">Planning what would change …</p>;
  const { conflicts, risks, files, hash } = plan.data;
  const blocked = conflicts.length > 0 || files === 0;
  return (
    <div className="stack">
      <PlanWords plan={plan.data} />
      {promote.error !== null && <Failure error={promote.error} />}
      {risks.length > 0 && (
        <label className="row small">
          <input type="checkbox" checked={risky} onChange={(event) => setRisky(event.target.checked)} />I looked at what is risky
        </label>
      )}
      <div className="row wraps">
        <button
          type="button"
          className="button primary"
          disabled={blocked || promote.isPending || (risks.length > 0 && !risky)}
          onClick={() => promote.mutate({ ...source, hash, allowRisky: risky })}
        >
          {promote.isPending ? "Promoting: checks, then the files …" : "Promote"}
        </button>
        <Command line={line} />
      </div>
      <p className="small muted">It can be undone afterwards.</p>
    </div>
  );
}

/** The newest promotion of a sandbox or an experiment, where there is one. */
function useNewest({ sandbox, experiment }: Source): Promotion | undefined {
  const query = useAnswer("listPromotions", { all: true });
  return query.data?.promotions.find(
    (one) =>
      one.kind === "promotion" &&
      ((experiment !== undefined && one.experiment === experiment) || (sandbox !== undefined && one.sandbox === sandbox)),
  );
}

export function PromotionCard({
  source,
  ready,
  line,
}: {
  readonly source: Source;
  readonly ready: boolean;
  readonly line: string;
}): ReactNode {
  const promotion = useNewest(source);
  const again = promotion !== undefined && ["undone", "failed", "discarded"].includes(promotion.state);
  return (
    <Section title="Into reality">
      <div className="card">
        {!ready && promotion === undefined ? (
          <Empty>There is nothing to promote yet.</Empty>
        ) : (
          <div className="body stack">
            {promotion !== undefined && <PromotionState promotion={promotion} />}
            {ready && (promotion === undefined || again) && <Offer source={source} line={line} />}
          </div>
        )}
      </div>
    </Section>
  );
}
