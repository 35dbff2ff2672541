/** What agents may do: try an action against the rules before an agent does, and the rules that people added. */
import { useState, type FormEvent, type ReactNode } from "react";
import type { InputOf, OutputOf } from "../../../src/base/schema/contracts.ts";
import { go } from "../app/router.tsx";
import { Ago, Answered, Command, Empty, Failure, Section, Sentence } from "../parts/parts.tsx";
import { State, type Tone } from "../parts/state.tsx";
import { useAct, useAnswer } from "../server/queries.ts";

type Explained = OutputOf<"explainPolicy">;
type Action = InputOf<"explainPolicy">["action"];

const TONES: Readonly<Record<Explained["verdict"], Tone>> = { allow: "passed", ask: "waiting", deny: "failed" };
const SAYS: Readonly<Record<Explained["verdict"], string>> = {
  allow: "It is done without a question.",
  ask: "A person is asked first.",
  deny: "It is not done.",
};

const KINDS = ["command", "host", "write", "delete", "read"] as const;
type Kind = (typeof KINDS)[number];
const KIND_WORDS: Readonly<Record<Kind, readonly [name: string, example: string]>> = {
  command: ["Run", "git push origin main"],
  host: ["Reach", "api.example.com"],
  write: ["Write", "package.json"],
  delete: ["Delete", "src/old.ts"],
  read: ["Read", ".env"],
};

function actionOf(kind: Kind, text: string): Action {
  if (kind === "command") return { kind, command: text };
  return kind === "host" ? { kind, host: text } : { kind: "path", path: text, access: kind };
}

/** The command line explains commands; for the rest there is none. */
function lineOf(text: string, whose: string): string {
  const flag = whose === "" ? "" : whose.startsWith("level") ? `--level ${whose.slice(5)} ` : `--sandbox ${whose} `;
  return `viv policy explain ${flag}-- '${text.replaceAll("'", "'\\''")}'`;
}

function Parts({ explained }: { readonly explained: Explained }): ReactNode {
  if (explained.parts.length < 2) return null;
  return (
    <div className="scroll-x" tabIndex={0}>
      <table className="small">
        <thead>
          <tr>
            <th>Part</th>
            <th>Verdict</th>
            <th>Rule and reason</th>
          </tr>
        </thead>
        <tbody>
          {explained.parts.map((part, index) => (
            <tr key={`${part.command} ${index}`}>
              <td>
                <code className="wrap">{part.command}</code>
              </td>
              <td>
                <State tone={TONES[part.verdict]}>{part.verdict}</State>
              </td>
              <td className="wrap">
                <code>{part.rule}</code>{" "}
                <span className="muted">
                  <Sentence text={part.reason} />
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** `whose` is `level2`, or the name of a sandbox, or nothing for the defaults. */
function Answer({ kind, text, whose }: { readonly kind: Kind; readonly text: string; readonly whose: string }): ReactNode {
  const level = /^level([123])$/.exec(whose)?.[1];
  const query = useAnswer("explainPolicy", {
    action: actionOf(kind, text),
    ...(level === undefined ? (whose === "" ? {} : { sandbox: whose }) : { level: Number(level) }),
  });
  return (
    <Answered query={query} what="what the rules say">
      {(explained) => (
        <div className="stack" role="status">
          <div className="row wraps">
            <State tone={TONES[explained.verdict]}>{explained.verdict}</State>
            <span>{SAYS[explained.verdict]}</span>
          </div>
          <dl className="facts small">
            <dt>Rule</dt>
            <dd>
              <code>{explained.rule}</code>
            </dd>
            <dt>Reason</dt>
            <dd>
              <Sentence text={explained.reason} />
            </dd>
          </dl>
          <Parts explained={explained} />
        </div>
      )}
    </Answered>
  );
}

function Explain({ query }: { readonly query: URLSearchParams }): ReactNode {
  const asked = query.get("try") ?? "";
  const kind = KINDS.find((one) => one === query.get("kind")) ?? "command";
  const whose = query.get("whose") ?? "";
  const [text, setText] = useState(asked);
  const sandboxes = useAnswer("listSandboxes", {}).data?.sandboxes ?? [];
  const show = (change: Readonly<Record<string, string>>): void => {
    const next = new URLSearchParams({ show: "policy", try: text, kind, whose, ...change });
    go(`/machine?${next.toString()}`, { replace: true });
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    show({});
  };
  return (
    <Section title="What would the rules say?" aside={asked !== "" && kind === "command" && <Command line={lineOf(asked, whose)} />}>
      <div className="card">
        <div className="body stack">
          <form className="row wraps explain" onSubmit={submit}>
            <select
              className="field"
              aria-label="What the agent wants to do"
              value={kind}
              onChange={(event) => show({ kind: event.target.value })}
            >
              {KINDS.map((one) => (
                <option key={one} value={one}>
                  {KIND_WORDS[one][0]}
                </option>
              ))}
            </select>
            <input
              className="field grow mono"
              aria-label="The action"
              placeholder={KIND_WORDS[kind][1]}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
            <select className="field" aria-label="Whose rules" value={whose} onChange={(event) => show({ whose: event.target.value })}>
              <option value="">by the defaults</option>
              <option value="level1">at level 1, guided</option>
              <option value="level2">at level 2, intelligent</option>
              <option value="level3">at level 3, full</option>
              {sandboxes.map(({ name }) => (
                <option key={name} value={name}>
                  in {name}
                </option>
              ))}
            </select>
            <button type="submit" className="button primary" disabled={text.trim() === ""}>
              Explain
            </button>
          </form>
          {asked.trim() === "" ? (
            <p className="muted small">
              Type what an agent could want to do. Nothing is run: the rules are asked, and say which of them decides.
            </p>
          ) : (
            <Answer kind={kind} text={asked} whose={whose} />
          )}
        </div>
      </div>
    </Section>
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
              <Empty>There is none: every question is asked. “Always allow” on a question adds one.</Empty>
            ) : (
              <ul className="list">
                {rules.map((rule) => (
                  <li key={rule.id} className="finding">
                    <div className="grow">
                      <code className="wrap">{rule.rule}</code>
                      <div className="small muted wrap">
                        {rule.project} · {rule.sandboxName ?? "this machine"} asked · <Ago at={rule.addedAt} />
                      </div>
                    </div>
                    <button
                      type="button"
                      className="button small"
                      title={`viv policy forget ${rule.id}`}
                      onClick={() => forget.mutate({ rule: rule.id })}
                    >
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

export function Policy({ query }: { readonly query: URLSearchParams }): ReactNode {
  return (
    <>
      <Explain query={query} />
      <Rules />
    </>
  );
}
