/** Deny, once, always: each answer is behind one more tap. A browser that may not answer is told how to get one that may. */
import { useState, type ReactNode } from "react";
import type { Question } from "../../../src/base/schema/question.ts";
import { useAct } from "../server/queries.ts";
import { session } from "../server/session.ts";
import { Command, Failure } from "./parts.tsx";

type Answer = "once" | "always" | "deny";

const SAYS: Readonly<Record<Answer, { readonly text: string; readonly sure: string }>> = {
  deny: { text: "Deny", sure: "Yes, deny it" },
  once: { text: "Allow once", sure: "Yes, allow it once" },
  always: { text: "Always allow", sure: "Yes, always allow this" },
};

export function AnswerButtons({ question }: { readonly question: Pick<Question, "id" | "kind" | "always"> }): ReactNode {
  const [chosen, setChosen] = useState<Answer>();
  const act = useAct("answerApproval");
  const own = session();
  const mayAnswer = own?.mayAnswer === true;
  const give = (answer: Answer): void => act.mutate({ approval: question.id, answer, approver: own?.key ?? "" });
  if (!mayAnswer)
    return (
      <div className="notice is-waiting">
        <div className="stack">
          <p>This browser may look, and not answer: its link was not made by a person on a terminal.</p>
          <Command line={`viv open /question/${question.id}`} />
        </div>
      </div>
    );
  const answers: readonly Answer[] =
    question.always === null || question.kind === "promotion" ? ["deny", "once"] : ["deny", "once", "always"];
  return (
    <div className="stack">
      {act.error !== null && <Failure error={act.error} />}
      {chosen === undefined ? (
        <div className="answers">
          {answers.map((answer) => (
            <button
              key={answer}
              type="button"
              className={`button ${answer === "deny" ? "danger" : answer === "once" ? "primary" : ""}`}
              onClick={() => setChosen(answer)}
            >
              {SAYS[answer].text}
            </button>
          ))}
        </div>
      ) : (
        <div className="answers" role="group" aria-label="Are you sure">
          <button type="button" className="button" onClick={() => setChosen(undefined)}>
            Back
          </button>
          <button
            type="button"
            className={`button ${chosen === "deny" ? "danger" : "primary"}`}
            disabled={act.isPending}
            onClick={() => give(chosen)}
          >
            {act.isPending ? "Sending …" : SAYS[chosen].sure}
          </button>
        </div>
      )}
      {chosen === "always" && question.always !== null && (
        <p className="small">
          This rule is added for the project: <code className="wrap">{question.always}</code>
        </p>
      )}
      <div className="row wraps">
        <Command line={`viv approve ${question.id}`} />
        <Command line={`viv deny ${question.id}`} />
      </div>
    </div>
  );
}
