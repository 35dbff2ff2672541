/** Several approaches to one task: the verdict with its reason, promote and undo, attempts side by side, and two of them against each other. */
import type { ReactNode } from "react";
import type { Experiment } from "../../../src/base/schema/experiment.ts";
import type { PageProps } from "../app/pages.tsx";
import { go } from "../app/router.tsx";
import { Attempts } from "../experiment/attempts.tsx";
import { Compare } from "../experiment/compare.tsx";
import { AttemptDetails } from "../experiment/attempt-details.tsx";
import { Ago, Answered, Command, Failure, Section, Title } from "../parts/parts.tsx";
import { PromotionCard } from "../parts/promotion-card.tsx";
import { experimentTitle, experimentWords } from "../parts/rows.tsx";
import { State } from "../parts/state.tsx";
import { useAct, useAnswer } from "../server/queries.ts";
import "../style/experiment.css";

function Again({ experiment }: { readonly experiment: Experiment }): ReactNode {
  const cancel = useAct("cancelExperiment");
  const retry = useAct("retryExperiment");
  const over = experiment.endedAt !== null;
  const error = cancel.error ?? retry.error;
  return (
    <>
      {error !== null && <Failure error={error} />}
      <div className="row wraps again">
        <button
          type="button"
          className="button small"
          disabled={retry.isPending || cancel.isPending}
          onClick={() => (over ? retry.mutate({ experiment: experiment.id, all: true }) : cancel.mutate({ experiment: experiment.id }))}
        >
          {over ? "Try all again" : "Cancel"}
        </button>
        <Command line={`viv experiment ${experiment.id} ${over ? "retry --all" : "cancel"}`} />
      </div>
    </>
  );
}

function reasonOf(experiment: Experiment): string {
  if (experiment.reason !== null) return experiment.reason;
  if (experiment.state === "choosing") return "The checks are done. Pick the attempt that you want.";
  return experiment.endedAt === null ? "The verdict comes when the attempts have ended." : "No winner was chosen.";
}

function VerdictCard({ experiment }: { readonly experiment: Experiment }): ReactNode {
  const { tone, text } = experimentWords(experiment);
  return (
    <Section title="Verdict">
      <div className="card">
        <div className="body stack">
          <div className="verdict">
            <State tone={tone}>{text}</State>
            <p className="wrap">{reasonOf(experiment)}</p>
          </div>
          <dl className="facts small">
            <dt>Judged by</dt>
            <dd>
              {experiment.checks.length === 0
                ? "no check"
                : experiment.checks.map((check) => (
                    <code key={check} className="check">
                      {check}
                    </code>
                  ))}
            </dd>
            <dt>Better is</dt>
            <dd>{experiment.rules.join(", then ")}</dd>
          </dl>
          <Again experiment={experiment} />
        </div>
      </div>
    </Section>
  );
}

function One({ experiment, query }: { readonly experiment: Experiment; readonly query: URLSearchParams }): ReactNode {
  const { tone, text } = experimentWords(experiment);
  const [only] = experiment.attempts;
  const change = (name: string, value: string | null): void => {
    const next = new URLSearchParams(query);
    if (value === null) next.delete(name);
    else next.set(name, value);
    go(`/experiment/${experiment.id}${next.size === 0 ? "" : `?${next.toString().replaceAll("%2C", ",")}`}`, { replace: true });
  };
  return (
    <>
      <Title
        crumbs={[{ to: "/work?show=experiments", text: "Experiments" }]}
        title={experimentTitle(experiment)}
        tab={`${text}: ${experimentTitle(experiment)}`}
        state={<State tone={tone}>{text}</State>}
      >
        <div className="row wraps small muted">
          <code>{experiment.project}</code>
          <Ago at={experiment.createdAt} />
          <Command line={`viv experiment ${experiment.id}`} />
        </div>
      </Title>
      <div className="halves">
        <VerdictCard experiment={experiment} />
        <PromotionCard
          source={{ experiment: experiment.id }}
          ready={experiment.winner !== null}
          line={`viv promote ${experiment.id}`}
          winner={experiment.attempts.length === 1 ? undefined : experiment.attempts.find(({ index }) => index === experiment.winner)?.name}
        />
      </div>
      <Attempts experiment={experiment} opened={query.get("attempt")} onOpen={(name) => change("attempt", name)} />
      {only !== undefined && experiment.attempts.length === 1 ? (
        query.get("attempt") === null && <AttemptDetails attempt={only} />
      ) : (
        <Compare experiment={experiment} wanted={query.get("compare")} onChoose={(names) => change("compare", names)} />
      )}
    </>
  );
}

export default function ExperimentPage({ parts: [id = ""], query }: PageProps): ReactNode {
  const answer = useAnswer("inspectExperiment", { experiment: id });
  return (
    <main className="page experiment">
      <Answered query={answer} what="the experiment">
        {(experiment) => <One experiment={experiment} query={query} />}
      </Answered>
    </main>
  );
}
