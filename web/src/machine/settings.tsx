/** What this browser shows and which browsers are logged in. */
import type { ReactNode } from "react";
import { ThemeChoice } from "../app/theme.tsx";
import { Ago, Answered, Command, Failure, Section } from "../parts/parts.tsx";
import { browserName } from "../parts/words.ts";
import { useAct, useAnswer } from "../server/queries.ts";
import { session } from "../server/session.ts";

function Browsers(): ReactNode {
  const query = useAnswer("listSessions", {}, { every: 10_000 });
  const end = useAct("endSession");
  const own = session()?.id;
  return (
    <Answered query={query} what="browsers">
      {({ sessions }) => (
        <Section title="Browsers that are logged in" aside={<Command line="viv open --sessions" />}>
          {end.error !== null && <Failure error={end.error} />}
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

function Appearance(): ReactNode {
  return (
    <Section title="Appearance">
      <div className="card">
        <div className="body row wraps">
          <span className="grow">Light, dark, or as the system says</span>
          <ThemeChoice />
        </div>
      </div>
    </Section>
  );
}

export function Settings(): ReactNode {
  return (
    <>
      <Appearance />
      <Browsers />
    </>
  );
}
