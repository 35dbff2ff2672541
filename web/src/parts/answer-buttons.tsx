/** Deny and once are one tap; always adds a rule, which is shown first, and takes one more. A browser that may not answer is told how to get one that may. */
import { useState, type ReactNode } from "react";
import type { Question } from "../../../src/base/schema/question.ts";
import { useAct } from "../server/queries.ts";
import { session } from "../server/session.ts";
import { Command, Failure } from "./parts.tsx";

type Answer = "once" | "always" | "deny";

const SAYS: Readonly<Record<Answer, string>> = { deny: "Deny", once: "Allow once", always: "Always allow …" };

export function AnswerButtons({ question }: { readonly question: Pick<Question, "id" | "kind" | "always"> }): ReactNode {
  const [always, setAlways] = useState(false);
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
      {!always ? (
        <div className="answers">
          {answers.map((answer) => (
            <button
              key={answer}
              type="button"
              className={`button ${answer === "deny" ? "danger" : answer === "once" ? "primary" : ""}`}
              disabled={act.isPending}
              onClick={() => (answer === "always" ? setAlways(true) : give(answer))}
            >
              {act.isPending && act.variables.answer === answer ? "Sending …" : SAYS[answer]}
            </button>
          ))}
        </div>
      ) : (
        <>
          <p>
            This rule is added for the project: <code className="wrap">{question.always}</code>
          </p>
          <div className="answers" role="group" aria-label="Are you sure">
            <button type="button" className="button" onClick={() => setAlways(false)}>
              Back
            </button>
            <button type="button" className="button primary" disabled={act.isPending} onClick={() => give("always")}>
              {act.isPending ? "Sending …" : "Yes, always allow this"}
            </button>
          </div>
        </>
      )}
      <div className="row wraps">
        <Command line={`viv approve ${question.id}`} />
        <Command line={`viv deny ${question.id}`} />
      </div>
    </div>
  );
}
