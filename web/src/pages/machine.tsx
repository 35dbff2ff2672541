/** The machine: what the server uses of it, what it costs, what it can do, who decided what, and who is logged in. */
import { useEffect, useRef, type ReactNode } from "react";
import type { ServerStatus } from "../../../src/base/schema/server.ts";
import type { UsageRow } from "../../../src/base/schema/model.ts";
import type { PageProps } from "../app/pages.tsx";
import { Link } from "../app/router.tsx";
import { AuditList } from "../parts/audit-list.tsx";
import { Ago, Answered, Command, Empty, Failure, Section, Title } from "../parts/parts.tsx";
import { Plot, useHistory } from "../parts/plot.tsx";
import { State, type Tone } from "../parts/state.tsx";
import { baseName, browserName, bytes, compact, dollars, plural } from "../parts/words.ts";
import { Notifications } from "../push/notifications.tsx";
import { useAct, useAnswer, useRecentEvents } from "../server/queries.ts";
import { session } from "../server/session.ts";
import "../style/sandbox.css";

const TABS = ["overview", "costs", "doctor", "audit", "events", "rules", "secrets", "notifications", "browsers"] as const;
type Tab = (typeof TABS)[number];

function Overview({ status, stamp }: { readonly status: ServerStatus; readonly stamp: number }): ReactNode {
  const used = status.memory.totalBytes - status.memory.freeBytes;
  const full = status.disk.totalBytes - status.disk.freeBytes;
  const count = Object.values(status.sandboxes).reduce((sum, one) => sum + one, 0);
  const memory = useHistory(used, stamp);
  const disk = useHistory(full, stamp);
  const boxes = useHistory(status.sandboxes["running"] ?? 0, stamp);
  return (
    <>
      <Section title="Use">
        <div className="card">
          <div className="body plots">
            <Plot
              name="Memory of the machine"
              values={memory}
              limit={status.memory.totalBytes}
              words={`${bytes(used)} of ${bytes(status.memory.totalBytes)}`}
            />
            <Plot
              name="Disk under the state folder"
              values={disk}
              limit={status.disk.totalBytes}
              words={`${bytes(full)} of ${bytes(status.disk.totalBytes)}`}
            />
            <Plot
              name="Sandboxes that run"
              values={boxes}
              limit={null}
              words={`${status.sandboxes["running"] ?? 0} of ${count} there are`}
            />
          </div>
        </div>
      </Section>
      <Section title="Server" aside={<Command line="viv status" />}>
        <div className="card">
          <dl className="facts body">
            <dt>Version</dt>
            <dd>{status.version}</dd>
            <dt>Runs since</dt>
            <dd>
              <Ago at={status.startedAt} />, process {status.pid}
            </dd>
            <dt>Walls</dt>
            <dd>
              {status.driver}, as {status.mode}; limits are {status.limitsHeld}
            </dd>
            <dt>Storage</dt>
            <dd>
              {status.storage} in <code>{status.home}</code>
            </dd>
            <dt>Listens on</dt>
            <dd>
              <code>{status.listen ?? "its socket"}</code>
            </dd>
            <dt>Events</dt>
            <dd>{status.newestEvent}</dd>
          </dl>
        </div>
      </Section>
    </>
  );
}

/** Sums by a key, the largest first. */
function sums(
  rows: readonly UsageRow[],
  key: (row: UsageRow) => string,
): { name: string; cost: number; tokens: number; requests: number }[] {
  const found = new Map<string, { name: string; cost: number; tokens: number; requests: number }>();
  for (const row of rows) {
    const name = key(row);
    const sum = found.get(name) ?? { name, cost: 0, tokens: 0, requests: 0 };
    found.set(name, {
      name,
      cost: sum.cost + row.microDollars / 1e6,
      tokens: sum.tokens + row.inputTokens + row.outputTokens + row.cacheReadTokens + row.cacheWriteTokens,
      requests: sum.requests + row.requests,
    });
  }
  return [...found.values()].toSorted((one, other) => other.cost - one.cost);
}

function CostTable({ title, rows }: { readonly title: string; readonly rows: ReturnType<typeof sums> }): ReactNode {
  return (
    <Section title={title}>
      <div className="card">
        <table>
          <tbody>
            {rows.slice(0, 30).map((row) => (
              <tr key={row.name}>
                <td className="wrap">{row.name}</td>
                <td className="right muted">{compact(row.tokens)} tokens</td>
                <td className="right">{dollars(row.cost)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function Costs(): ReactNode {
  const query = useAnswer("usage", {}, { every: 10_000 });
  return (
    <Answered query={query} what="costs">
      {({ usage, todayMicroDollars, budgets }) =>
        usage.length === 0 ? (
          <div className="card">
            <Empty command="viv usage">No model was asked yet, so nothing was spent.</Empty>
          </div>
        ) : (
          <>
            <p>
              {dollars(todayMicroDollars / 1e6)} today{budgets.day === undefined ? "" : ` of ${dollars(budgets.day)}`}.
            </p>
            <div className="halves">
              <CostTable title="By day" rows={sums(usage, ({ day }) => day).toSorted((one, other) => (one.name > other.name ? -1 : 1))} />
              <CostTable title="By model" rows={sums(usage, ({ provider, model }) => `${model} · ${provider}`)} />
              <CostTable title="By project" rows={sums(usage, ({ project }) => baseName(project))} />
              <CostTable title="By sandbox" rows={sums(usage, ({ name }) => name)} />
            </div>
          </>
        )
      }
    </Answered>
  );
}

const VERDICTS: Readonly<Record<string, Tone>> = { good: "passed", reduced: "waiting", missing: "failed" };

function DoctorList(): ReactNode {
  const query = useAnswer("doctor", {});
  return (
    <Answered query={query} what="what this machine can do">
      {({ findings }) => (
        <div className="card">
          <ul className="list">
            {findings.map((one) => (
              <li key={one.check} className="finding">
                <State tone={VERDICTS[one.verdict] ?? "stopped"}>{one.verdict}</State>
                <div className="grow">
                  <div>
                    <span className="strong">{one.check}</span> <span className="wrap">{one.detail}</span>
                  </div>
                  {one.remedy !== null && <div className="muted small wrap">{one.remedy}</div>}
                </div>
              </li>
            ))}
          </ul>
        </div>
      )}
    </Answered>
  );
}

function Audit(): ReactNode {
  const query = useAnswer("verifyAudit", {});
  return (
    <>
      <Answered query={query} what="whether the chain is whole">
        {(report) => (
          <div className={`notice is-${report.whole ? "passed" : "failed"}`}>
            <span className="grow wrap">
              {report.whole ? `The chain of ${plural(report.records, "record")} is whole.` : report.problem}
            </span>
            <Command line="viv audit --verify" />
          </div>
        )}
      </Answered>
      <AuditList />
    </>
  );
}

function Events(): ReactNode {
  const events = useRecentEvents();
  return (
    <div className="card">
      {events.length === 0 ? (
        <Empty command="viv events --follow">Nothing has happened since this page was opened.</Empty>
      ) : (
        <ul className="list small events">
          {events
            .slice(-500)
            .toReversed()
            .map((event) => (
              <li key={event.sequence} data-at={event.at}>
                <span className="number muted">{event.sequence}</span>
                <span className="strong">{event.type}</span>
                <code className="cut muted">{JSON.stringify(event.data)}</code>
              </li>
            ))}
        </ul>
      )}
    </div>
  );
}

function Rules(): ReactNode {
  const query = useAnswer("listRules", {});
  const forget = useAct("forgetRule");
  return (
    <Answered query={query} what="rules">
      {({ rules }) => (
        <Section title="Rules that people added with “always”" count={rules.length} aside={<Command line="viv policy rules" />}>
          {forget.error !== null && <Failure error={forget.error} />}
          <div className="card">
            {rules.length === 0 ? (
              <Empty>There is none: every question is asked.</Empty>
            ) : (
              <ul className="list">
                {rules.map((rule) => (
                  <li key={rule.id} className="finding">
                    <code className="grow wrap">{rule.rule}</code>
                    <button type="button" className="button small" onClick={() => forget.mutate({ rule: rule.id })}>
                      Forget
                    </button>
                  </li>
                ))}
              </ul>
            )}
          </div>
        </Section>
      )}
    </Answered>
  );
}

function Secrets(): ReactNode {
  const query = useAnswer("listSecrets", {});
  return (
    <Answered query={query} what="secrets">
      {({ secrets }) => (
        <div className="card">
          {secrets.length === 0 ? (
            <Empty command="viv secret set NAME --host HOST">No secret is kept.</Empty>
          ) : (
            <table>
              <thead>
                <tr>
                  <th>Name</th>
                  <th>For</th>
                  <th>Changed</th>
                </tr>
              </thead>
              <tbody>
                {secrets.map((one) => (
                  <tr key={one.name}>
                    <td className="strong">{one.name}</td>
                    <td className="wrap">{one.hosts.join(", ")}</td>
                    <td>
                      <Ago at={one.changedAt} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </div>
      )}
    </Answered>
  );
}

function Browsers(): ReactNode {
  const query = useAnswer("listSessions", {}, { every: 10_000 });
  const end = useAct("endSession");
  const own = session()?.id;
  return (
    <Answered query={query} what="browsers">
      {({ sessions }) => (
        <Section title="Browsers that are logged in" aside={<Command line="viv open --sessions" />}>
          <div className="card">
            <ul className="list">
              {sessions.map((one) => (
                <li key={one.id} className="finding">
                  <div className="grow">
                    <div className="wrap">
                      {one.browser === null ? "A link that was not used yet" : <span title={one.browser}>{browserName(one.browser)}</span>}{" "}
                      {one.id === own && <span className="is-passed">· this one</span>}
                    </div>
                    <div className="small muted">
                      {one.mayAnswer ? "may answer questions" : "may not answer questions"} · opened{" "}
                      <Ago at={one.openedAt ?? one.createdAt} />
                    </div>
                  </div>
                  <button
                    type="button"
                    className="button small"
                    title={`viv open --end ${one.id}`}
                    onClick={() => end.mutate({ session: one.id })}
                  >
                    Log out
                  </button>
                </li>
              ))}
            </ul>
          </div>
        </Section>
      )}
    </Answered>
  );
}

function Content({ tab }: { readonly tab: Tab }): ReactNode {
  const status = useAnswer("status", {}, { every: 3_000 });
  switch (tab) {
    case "overview":
      return (
        <Answered query={status} what="the machine">
          {(data) => <Overview status={data} stamp={status.dataUpdatedAt} />}
        </Answered>
      );
    case "costs":
      return <Costs />;
    case "doctor":
      return <DoctorList />;
    case "audit":
      return <Audit />;
    case "events":
      return <Events />;
    case "rules":
      return <Rules />;
    case "secrets":
      return <Secrets />;
    case "notifications":
      return <Notifications />;
    case "browsers":
      return <Browsers />;
  }
}

export default function Machine({ query }: PageProps): ReactNode {
  const tab = TABS.find((one) => one === query.get("show")) ?? "overview";
  const tabs = useRef<HTMLElement>(null);
  // On a phone there are more tabs than fit.
  useEffect(() => tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [tab]);
  return (
    <main className="page">
      <Title title="Machine" />
      <nav className="tabs" aria-label="Parts of the machine" ref={tabs}>
        {TABS.map((one) => (
          <Link key={one} to={`/machine?show=${one}`} aria-current={one === tab ? "page" : undefined}>
            {one.replace(/^./, (letter) => letter.toUpperCase())}
          </Link>
        ))}
      </nav>
      <Content tab={tab} />
    </main>
  );
}
