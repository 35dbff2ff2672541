/** One firing: what was seen, triage with its reason, attempts, verdict, what was promoted or waits, cost, undo. */
import type { ReactNode } from "react";
import type { Firing } from "../../../src/base/schema/automation.ts";
import type { PageProps } from "../app/pages.tsx";
import { Link } from "../app/router.tsx";
import { Decided, Reality, Seen, Tried, Way } from "../automation/firing-parts.tsx";
import { firingTone, firingWord, seenLine } from "../automation/words.ts";
import { Ago, Answered, Command, Section, Title, Sentence } from "../parts/parts.tsx";
import { PlanWords, PromotionState } from "../parts/promotion-card.tsx";
import { State } from "../parts/state.tsx";
import { dollars, duration } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";
import "../style/automation.css";

/** Triggers that join it, and why it waits, are no events: while it has not begun, the page asks. */
const ASK_AGAIN_MS = 5_000;

const NOTHING: Readonly<Partial<Record<Firing["state"], string>>> = {
  done: "Nothing was promoted: there was nothing to change, or it only looked.",
  alerted: "Nothing was promoted: its authority is to tell.",
  failed: "Nothing was promoted. Reality is as it was.",
  muted: "Nothing was promoted: it would have gone in circles.",
};

function Promoted({ firing }: { readonly firing: Firing }): ReactNode {
  const { promotion, undo, state } = firing;
  const query = useAnswer("inspectPromotion", { promotion: promotion ?? "" }, { enabled: promotion !== null });
  return (
    <Section title="Into reality">
      <div className="card body stack">
        {promotion === null ? (
          <p className="wrap">{NOTHING[state] ?? "Nothing yet: a change comes here once it is verified."}</p>
        ) : (
          <Answered query={query} what="the promotion">
            {(one) => (
              <>
                <PromotionState promotion={one} />
                {one.plan !== null && <PlanWords plan={one.plan} done={["applied", "undone"].includes(one.state)} />}
                <Link to={`/review/${one.id}`} className="link small">
                  Look at the change
                </Link>
              </>
            )}
          </Answered>
        )}
        {undo !== null && (
          <p className="small">
            It was taken back.{" "}
            <Link to={`/review/${undo}`} className="link">
              What was taken back
            </Link>
          </p>
        )}
      </div>
    </Section>
  );
}

function One({ firing }: { readonly firing: Firing }): ReactNode {
  const { id, name, automation, state, reason, project, seenAt, endedAt, cost, triage } = firing;
  const tone = firingTone(state);
  const title = `${name}: ${seenLine(firing)}`;
  return (
    <>
      <Title
        crumbs={[
          { to: "/automation", text: "Automations" },
          { to: `/automation/${automation}`, text: name },
        ]}
        title={title}
        tab={`${firingWord(state)}: ${title}`}
        state={<State tone={tone}>{firingWord(state)}</State>}
      >
        <div className="row wraps small muted">
          <code>{project}</code>
          <Ago at={seenAt} />
          {endedAt !== null && <span>took {duration(Date.parse(endedAt) - Date.parse(seenAt))}</span>}
          <span>cost {dollars(cost)}</span>
          <Command line={`viv automation history ${id}`} />
        </div>
      </Title>
      {reason !== null && triage !== null && (
        <div className={`notice is-${tone}`} role="status">
          <p className="wrap">
            <Sentence text={reason} />
          </p>
        </div>
      )}
      <div className="halves">
        <Seen firing={firing} />
        <Decided firing={firing} />
      </div>
      <Tried firing={firing} />
      <Promoted firing={firing} />
      <Reality firing={firing} />
      <Way firing={firing} />
    </>
  );
}

export default function FiringPage({ parts: [id = ""] }: PageProps): ReactNode {
  const known = useAnswer("inspectFiring", { firing: id });
  const isWaiting = known.data?.state === "seen";
  const answer = useAnswer("inspectFiring", { firing: id }, isWaiting ? { every: ASK_AGAIN_MS } : {});
  return (
    <main className="page firing">
      <Answered query={answer} what="the firing">
        {(firing) => <One firing={firing} />}
      </Answered>
    </main>
  );
}
