/** The morning page: what automations did, what was promoted, what waits for a person, and what it cost. */
import { useMemo, type ReactNode } from "react";
import type { MorningReport } from "../../../src/base/schema/automation.ts";
import { REPORT_SECTIONS, reportSince } from "../../../src/base/schema/automation-words.ts";
import type { PageProps } from "../app/pages.tsx";
import { Link } from "../app/router.tsx";
import { AutomationRow, FiringRow } from "../automation/rows.tsx";
import { Answered, Command, Empty, Failure, Section, Title } from "../parts/parts.tsx";
import { dollars, plural } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";
import "../style/automation.css";

const SPANS: readonly (readonly [since: string, text: string])[] = [
  ["today", "Today"],
  ["yesterday", "Since yesterday"],
  ["7d", "7 days"],
];
const ADD = "viv automation add deps --cron '0 3 * * *' --run 'npm update' --check 'npm test'";

function Sums({ report }: { readonly report: MorningReport }): ReactNode {
  const count = (state: string): number => report.states.find((one) => one.state === state)?.firings ?? 0;
  const all = report.states.reduce((sum, { firings }) => sum + firings, 0);
  const sums: readonly (readonly [text: string, value: string])[] = [
    ["triggers", String(report.triggers)],
    ["firings", String(all)],
    ["wait for you", String(count("waiting"))],
    ["promoted", String(count("promoted"))],
    ["undone", String(count("undone"))],
    ["failed", String(count("failed"))],
    ["spent on models", dollars(report.cost)],
  ];
  return (
    <dl className="card sums">
      {sums.map(([text, value]) => (
        <div key={text}>
          <dt>{text}</dt>
          <dd className="number">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Whole({ report }: { readonly report: MorningReport }): ReactNode {
  const { firings, stopped, left } = report;
  if (firings.length === 0 && stopped.length === 0)
    return (
      <div className="card">
        <Empty command={ADD}>No automation has fired since {new Date(report.since).toLocaleString()}. Add one:</Empty>
      </div>
    );
  return (
    <>
      <Sums report={report} />
      {stopped.length > 0 && (
        <Section title="Stopped themselves" count={stopped.length}>
          <div className="card">
            <ul className="list automations">
              {stopped.map((one) => (
                <AutomationRow key={one.id} automation={one} />
              ))}
            </ul>
          </div>
        </Section>
      )}
      {REPORT_SECTIONS.map(([title, states]) => {
        const fitting = firings.filter(({ state }) => states.includes(state));
        return fitting.length === 0 ? null : (
          <Section key={title} title={title} count={fitting.length}>
            <div className="card">
              <ul className="list">
                {fitting.map((one) => (
                  <FiringRow key={one.id} firing={one} named />
                ))}
              </ul>
            </div>
          </Section>
        );
      })}
      {left > 0 && (
        <p className="muted small">
          {plural(left, "more firing")} of this time {left === 1 ? "is" : "are"} counted, and not listed.
        </p>
      )}
    </>
  );
}

function Report({ since, at }: { readonly since: string; readonly at: Date }): ReactNode {
  const answer = useAnswer("reportFirings", { since: at.toISOString() });
  const waiting = answer.data?.states.find(({ state }) => state === "waiting")?.firings ?? 0;
  return (
    <>
      <Title crumbs={[{ to: "/automation", text: "Automations" }]} title="Report" tab={waiting > 0 ? `(${waiting}) Report` : "Report"}>
        <div className="row wraps small muted">
          <span>What automations did since {at.toLocaleString()}</span>
          <Command line={`viv report --since ${since}`} />
        </div>
      </Title>
      <nav className="tabs" aria-label="Time of the report">
        {SPANS.map(([span, text]) => (
          <Link key={span} to={`/report?since=${span}`} aria-current={span === since ? "page" : undefined}>
            {text}
          </Link>
        ))}
      </nav>
      <Answered query={answer} what="what automations did">
        {(report) => <Whole report={report} />}
      </Answered>
    </>
  );
}

export default function ReportPage({ query }: PageProps): ReactNode {
  const since = query.get("since") ?? "yesterday";
  // A time that begins anew with each drawing would be another question each time.
  const at = useMemo(() => reportSince(since, new Date()), [since]);
  return (
    <main className="page">
      {at === undefined ? (
        <Failure error={new Error(`“${since}” is no time: today, yesterday, 12h, or a date.`)} />
      ) : (
        <Report since={since} at={at} />
      )}
    </main>
  );
}
