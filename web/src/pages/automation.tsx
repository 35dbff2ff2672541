/** All automations, and one with what it waits for, what it may do, and its history. */
import { useState, type ReactNode } from "react";
import type { Automation } from "../../../src/base/schema/automation.ts";
import { AUTHORITY_TEXT, boundsText, triggerText } from "../../../src/base/schema/automation-words.ts";
import type { PageProps } from "../app/pages.tsx";
import { go, Link } from "../app/router.tsx";
import { Actions } from "../automation/actions.tsx";
import { AutomationRow, FiringRow, Until } from "../automation/rows.tsx";
import { automationWords } from "../automation/words.ts";
import { Ago, Answered, Command, Empty, Failure, Section, Title } from "../parts/parts.tsx";
import { State } from "../parts/state.tsx";
import { baseName } from "../parts/words.ts";
import { useAct, useAnswer } from "../server/queries.ts";
import "../style/automation.css";

const ADD = "viv automation add deps --cron '0 3 * * *' --run 'npm update' --check 'npm test'";
const FIRINGS = 50;
const MOST_FIRINGS = 1_000;

function List(): ReactNode {
  const query = useAnswer("listAutomations", {});
  return (
    <>
      <Title title="Automations">
        <div className="row wraps small muted">
          <span>Each notices something, tries in clones what to do, and changes reality within its authority.</span>
          <Link to="/report" className="link">
            What they did since yesterday
          </Link>
        </div>
      </Title>
      <Answered query={query} what="automations">
        {({ automations }) => (
          <div className="card">
            {automations.length === 0 ? (
              <Empty command={ADD}>There is no automation. Let an upgrade be tried each night, and proposed in the morning:</Empty>
            ) : (
              <ul className="list automations">
                {automations.map((one) => (
                  <AutomationRow key={one.id} automation={one} acts={<Actions automation={one} />} />
                ))}
              </ul>
            )}
          </div>
        )}
      </Answered>
    </>
  );
}

function Lines({ lines }: { readonly lines: readonly string[] }): ReactNode {
  return lines.map((line) => (
    <code key={line} className="line">
      {line}
    </code>
  ));
}

function Does({ automation }: { readonly automation: Automation }): ReactNode {
  const { id, spec, authority, nextAt, kind, source, project, createdAt } = automation;
  const bounds = boundsText(spec);
  return (
    <Section title="What it is">
      <div className="card">
        <dl className="facts body">
          <dt>Waits for</dt>
          <dd>
            {triggerText(automation)}
            {spec.when?.on === "schedule" && <code className="muted"> {spec.when.cron}</code>}
          </dd>
          {nextAt !== null && (
            <>
              <dt>Next</dt>
              <dd>
                <Until at={nextAt} /> <span className="muted">{new Date(nextAt).toLocaleString()}</span>
              </dd>
            </>
          )}
          {kind === "webhook" && (
            <>
              <dt>Calls</dt>
              <dd>
                <code>POST /hooks/{id}</code>, signed with <code>viv automation secret {automation.name}</code>
              </dd>
            </>
          )}
          <dt>Then</dt>
          <dd>
            {spec.task === undefined ? <Lines lines={spec.run ?? []} /> : <span className="task">{spec.task}</span>}
            {spec.task !== undefined && <span className="muted small"> by {spec.agent ?? "claude"}</span>}
          </dd>
          <dt>Verified by</dt>
          <dd>{spec.checks === undefined ? "the checks of the project" : <Lines lines={spec.checks} />}</dd>
          {spec.reality.length > 0 && (
            <>
              <dt>Reality is well if</dt>
              <dd>
                <Lines lines={spec.reality} />
              </dd>
            </>
          )}
          <dt>May</dt>
          <dd>
            <code>{authority}</code>: it {AUTHORITY_TEXT[authority]}
            {authority !== spec.authority && (
              <span className="muted">
                ; it asks for <code>{spec.authority}</code>, and your config allows no more
              </span>
            )}
          </dd>
          {bounds.length > 0 && (
            <>
              <dt>Bounds</dt>
              <dd>{bounds.join("; ")}</dd>
            </>
          )}
          <dt>Project</dt>
          <dd>
            <code>{project}</code>
          </dd>
          <dt>From</dt>
          <dd>
            {source === "config" ? "vivarium.json" : "viv automation add"}, <Ago at={createdAt} />
          </dd>
        </dl>
      </div>
    </Section>
  );
}

function History({ automation }: { readonly automation: Automation }): ReactNode {
  const [limit, setLimit] = useState(FIRINGS);
  const query = useAnswer("listFirings", { automation: automation.id, limit });
  const count = query.data?.firings.length ?? 0;
  return (
    <Section title="History" count={count} aside={<Command line={`viv automation history ${automation.name}`} />}>
      <div className="card">
        <Answered query={query} what="its history">
          {({ firings }) =>
            firings.length === 0 ? (
              <Empty command={`viv automation run ${automation.name}`}>It has not fired yet. Start it by hand:</Empty>
            ) : (
              <ul className="list">
                {firings.map((one) => (
                  <FiringRow key={one.id} firing={one} />
                ))}
              </ul>
            )
          }
        </Answered>
      </div>
      {count === limit && limit < MOST_FIRINGS && (
        <div>
          <button type="button" className="button" onClick={() => setLimit(Math.min(4 * limit, MOST_FIRINGS))}>
            Show more
          </button>
        </div>
      )}
    </Section>
  );
}

/** What it did is kept; the automation itself can't be brought back, so the page asks once. */
function Remove({ automation: { id, name, source } }: { readonly automation: Automation }): ReactNode {
  const remove = useAct("removeAutomation");
  const [asks, setAsks] = useState(false);
  if (source === "config") return <p className="small muted">It is one of vivarium.json: remove it there.</p>;
  return (
    <div className="stack">
      {remove.error !== null && <Failure error={remove.error} />}
      {asks && <p className="small">What is at work ends, and what it did so far is kept. The automation itself is gone then.</p>}
      <div className="row wraps">
        <button
          type="button"
          className="button small danger"
          disabled={remove.isPending}
          onClick={() => (asks ? remove.mutate({ automation: id }, { onSuccess: () => go("/automation") }) : setAsks(true))}
        >
          {asks ? `Remove ${name} now` : "Remove"}
        </button>
        {asks && (
          <button type="button" className="button small" onClick={() => setAsks(false)}>
            Keep it
          </button>
        )}
        <Command line={`viv automation rm ${name}`} />
      </div>
    </div>
  );
}

function One({ automation }: { readonly automation: Automation }): ReactNode {
  const { tone, text } = automationWords(automation);
  const { name, project, reason } = automation;
  return (
    <>
      <Title
        crumbs={[{ to: "/automation", text: "Automations" }]}
        title={name}
        tab={`${text}: ${name}`}
        state={<State tone={tone}>{text}</State>}
      >
        <div className="row wraps small muted">
          <span>{baseName(project)}</span>
          <Command line={`viv automation show ${name}`} />
        </div>
      </Title>
      {reason !== null && (
        <div className={`notice is-${tone}`} role="status">
          <p className="wrap">{reason}</p>
        </div>
      )}
      <Actions automation={automation} commands />
      <Does automation={automation} />
      <History automation={automation} />
      <Remove automation={automation} />
    </>
  );
}

export default function AutomationPage({ parts: [id = ""] }: PageProps): ReactNode {
  const answer = useAnswer("inspectAutomation", { automation: id }, { enabled: id !== "" });
  return (
    <main className="page">
      {id === "" ? (
        <List />
      ) : (
        <Answered query={answer} what="the automation">
          {(automation) => <One automation={automation} />}
        </Answered>
      )}
    </main>
  );
}
