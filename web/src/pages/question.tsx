/** Questions, and one question: made for a thumb. What is asked, by which agent, and what would happen come first; deny and once are one tap. */
import type { ReactNode } from "react";
import type { Question } from "../../../src/base/schema/question.ts";
import { Link } from "../app/router.tsx";
import type { PageProps } from "../app/pages.tsx";
import { AnswerButtons } from "../parts/answer-buttons.tsx";
import { Ago, Answered, Empty, Section, Sentence, Title, useNow } from "../parts/parts.tsx";
import { askWords, QuestionRow } from "../parts/rows.tsx";
import { State, toneOf } from "../parts/state.tsx";
import { duration, firstLine } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";
import "../style/question.css";

const CONSEQUENCE: Readonly<Record<Question["kind"], string>> = {
  command: "The command runs in the sandbox, this once.",
  tool: "The agent uses the tool, this once.",
  path: "The agent gets at the path, this once.",
  host: "The sandbox reaches the host, for this request.",
  effect: "The request is sent. What it changes outside can't be taken back.",
  promotion: "The change is written into the real project. `viv undo` takes it back.",
  resources: "The sandbox gets more of this machine.",
  secret: "The secret goes to where it was asked for. The agent does not see its value.",
  private: "The sandbox reaches an address of this network.",
  run: "The run goes on.",
};

function Deadline({ at }: { readonly at: string }): ReactNode {
  const left = Date.parse(at) - useNow();
  return (
    <span className={left < 60_000 ? "is-failed" : "is-waiting"}>
      {left > 0 ? `${duration(left)} left, then it is denied` : "the time is over"}
    </span>
  );
}

function Risks({ question }: { readonly question: Question }): ReactNode {
  if (question.risks === undefined || question.risks.length === 0) return null;
  return (
    <Section title="Look at these first" count={question.risks.length}>
      <div className="card">
        <ul className="list">
          {question.risks.map((risk) => (
            <li key={`${risk.path} ${risk.kind}`} className="risk">
              <code className="wrap">{risk.path}</code>
              <span className="muted small wrap">{risk.why}</span>
            </li>
          ))}
        </ul>
      </div>
    </Section>
  );
}

/** The agent and its run, where one works in the sandbox that asks. */
function Who({ question }: { readonly question: Question }): ReactNode {
  const runs = useAnswer("listRuns", { all: true }, { enabled: question.sandbox !== null });
  const run = runs.data?.runs.find(
    (one) => one.sandbox === question.sandbox && one.createdAt <= question.askedAt && (one.endedAt ?? "9") >= question.askedAt,
  );
  const name = question.sandboxName ?? question.sandbox;
  return (
    <>
      <dt>Who asks</dt>
      <dd>
        {run !== undefined && (
          <>
            <span className="strong">{run.agent}</span>, in the run{" "}
            <Link className="link" to={`/run/${run.id}`}>
              {firstLine(run.task)}
            </Link>
          </>
        )}
        {run === undefined && name === null && "This machine itself"}
        {run === undefined && name !== null && (
          <>
            A program in{" "}
            <Link className="link" to={`/sandbox/${name}`}>
              {name}
            </Link>
          </>
        )}
      </dd>
    </>
  );
}

function One({ question }: { readonly question: Question }): ReactNode {
  const waits = question.state === "waiting";
  return (
    <>
      <Title
        crumbs={[{ to: "/question", text: "Questions" }]}
        title={askWords(question)}
        tab={`${waits ? "?" : question.state} ${firstLine(question.target)}`}
        state={<State tone={waits ? "waiting" : toneOf(question.state)}>{question.state}</State>}
      >
        {waits && question.deadline !== null && (
          <p className="small">
            <Deadline at={question.deadline} />
          </p>
        )}
      </Title>
      <pre className="block asked" aria-label="What is asked for, exactly" tabIndex={0}>
        {question.target}
      </pre>
      <dl className="facts">
        <Who question={question} />
        <dt>Why</dt>
        <dd>
          <Sentence text={question.reason} />
        </dd>
        <dt>If allowed</dt>
        <dd>{CONSEQUENCE[question.kind]}</dd>
      </dl>
      {waits ? (
        <AnswerButtons question={question} />
      ) : (
        <p className="muted">
          {question.answeredAt === null ? (
            "It was not answered."
          ) : (
            <>
              Answered <Ago at={question.answeredAt} /> by {question.answeredBy}
              {question.scope === null ? "" : `, ${question.scope}`}.
            </>
          )}
        </p>
      )}
      <Risks question={question} />
      <Section title="All about it">
        <div className="card">
          <dl className="facts body">
            <dt>Sandbox</dt>
            <dd>
              {question.sandbox === null ? (
                "This machine's own"
              ) : (
                <Link className="link" to={`/sandbox/${question.sandboxName ?? question.sandbox}`}>
                  {question.sandboxName ?? question.sandbox}
                </Link>
              )}
            </dd>
            <dt>Project</dt>
            <dd>
              <code>{question.project}</code>
            </dd>
            <dt>Rule</dt>
            <dd>{question.rule === null ? "None: the default asks." : <code>{question.rule}</code>}</dd>
            {question.always !== null && (
              <>
                <dt>Always adds</dt>
                <dd>
                  <code>{question.always}</code>
                </dd>
              </>
            )}
            <dt>Asked</dt>
            <dd>
              <Ago at={question.askedAt} />
            </dd>
            <dt>Bound to</dt>
            <dd>
              <code>{question.hash}</code>
            </dd>
            {question.kind === "promotion" && (
              <>
                <dt>Change</dt>
                <dd>
                  <Link className="link" to={`/review/${question.id}`}>
                    Review it
                  </Link>
                </dd>
              </>
            )}
          </dl>
        </div>
      </Section>
    </>
  );
}

function All(): ReactNode {
  const query = useAnswer("listApprovals", { all: true });
  return (
    <>
      <Title title="Questions">
        <p className="muted small">Agents ask here before they do what a rule does not let them do alone.</p>
      </Title>
      <Answered query={query} what="questions">
        {({ approvals }) => {
          const waiting = approvals.filter(({ state }) => state === "waiting");
          const rest = approvals.filter(({ state }) => state !== "waiting").slice(0, 50);
          return (
            <>
              <Section title="Waiting" count={waiting.length}>
                <div className="card">
                  {waiting.length === 0 ? (
                    <Empty>No question waits for you.</Empty>
                  ) : (
                    <ul className="list">
                      {waiting.map((one) => (
                        <QuestionRow key={one.id} question={one} />
                      ))}
                    </ul>
                  )}
                </div>
              </Section>
              {rest.length > 0 && (
                <Section title="Answered">
                  <div className="card">
                    <ul className="list">
                      {rest.map((one) => (
                        <QuestionRow key={one.id} question={one} />
                      ))}
                    </ul>
                  </div>
                </Section>
              )}
            </>
          );
        }}
      </Answered>
    </>
  );
}

function ById({ id }: { readonly id: string }): ReactNode {
  const query = useAnswer("inspectApproval", { approval: id });
  return (
    <Answered query={query} what="the question">
      {(question) => <One question={question} />}
    </Answered>
  );
}

export default function QuestionPage({ parts: [id] }: PageProps): ReactNode {
  return <main className="page question">{id === undefined ? <All /> : <ById id={id} />}</main>;
}
