/** Parts that several pages use. Every text of a sandbox goes in as a child of an element, and so can't be anything but text. */
import { useEffect, useState, type ReactNode } from "react";
import type { UseQueryResult } from "@tanstack/react-query";
import { VivError } from "../../../src/base/schema/errors.ts";
import { Link } from "../app/router.tsx";
import { Icon } from "./icons.tsx";
import { ago, clock } from "./words.ts";

/** The time now, as often as it is worth showing. */
export function useNow(everyMs = 1_000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

export function Ago({ at }: { readonly at: string }): ReactNode {
  const now = useNow(10_000);
  return (
    <time dateTime={at} title={`${new Date(at).toLocaleDateString()} ${clock(at)}`}>
      {ago(at, now)}
    </time>
  );
}

/** As the command line shows ids, and takes them: their beginning. */
function withShortIds(line: string): string {
  return line.replaceAll(/(?<=^| )((?:exp|prm|run|apv|fir)[0-9a-z]{6})[0-9a-z]{20}(?=$| )/g, "$1");
}

/** The line of viv that does the same as the action beside it. */
export function Command({ line: whole }: { readonly line: string }): ReactNode {
  const line = withShortIds(whole);
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(line);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_200);
  };
  return (
    <span className="command">
      <code title={line}>{line}</code>
      <button type="button" onClick={() => void copy()} aria-label={`Copy ${line}`} title={copied ? "Copied" : "Copy"}>
        <Icon name={copied ? "check" : "copy"} />
      </button>
    </span>
  );
}

/** A sentence of the server's, in which what stands between backticks is to be typed, or was. */
export function Sentence({ text }: { readonly text: string }): ReactNode {
  return text.split(/`([^`]+)`/).map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}

export function Failure({ error, retry }: { readonly error: unknown; readonly retry?: () => void }): ReactNode {
  const known = error instanceof VivError ? error : undefined;
  return (
    <div className="notice is-failed" role="alert">
      <span className="is-failed">
        <Icon name="warning" />
      </span>
      <div className="stack grow">
        <div className="wrap">
          {known?.message ?? (error instanceof Error ? error.message : String(error))}{" "}
          {known !== undefined && <code className="muted">{known.code}</code>}
        </div>
        {known !== undefined && (
          <div className="muted wrap">
            <Sentence text={known.remedy} />
          </div>
        )}
      </div>
      {retry !== undefined && (
        <button type="button" className="button small" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** An answer, or in words what stands in its place. What was there stays while it is asked for again. */
export function Answered<Data>({
  query,
  what,
  children,
}: {
  readonly query: UseQueryResult<Data>;
  readonly what: string;
  readonly children: (data: Data) => ReactNode;
}): ReactNode {
  if (query.data !== undefined) return children(query.data);
  if (query.error !== null) return <Failure error={query.error} retry={() => void query.refetch()} />;
  return (
    <p className="muted" role="status">
      Loading {what} …
    </p>
  );
}

/** Several answers at once: a page that counts on all of them says nothing before it has them. */
export function AllAnswered<Data extends readonly unknown[]>({
  queries,
  what,
  children,
}: {
  readonly queries: { readonly [Index in keyof Data]: UseQueryResult<Data[Index]> };
  readonly what: string;
  readonly children: (data: Data) => ReactNode;
}): ReactNode {
  const missing = queries.find((query) => query.data === undefined);
  if (missing !== undefined) return <Answered query={missing} what={what} children={() => null} />;
  // The types of a tuple are lost in map; that none is missing was looked at above.
  return children(queries.map(({ data }) => data) as unknown as Data);
}

export function Empty({ children, command }: { readonly children: ReactNode; readonly command?: string }): ReactNode {
  return (
    <div className="empty">
      <div>{children}</div>
      {command !== undefined && <Command line={command} />}
    </div>
  );
}

export function Section({
  title,
  count,
  aside,
  children,
}: {
  readonly title: string;
  readonly count?: number;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <section className="section" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {count !== undefined && count > 0 && <span className="count">{count}</span>}
        <span className="grow" />
        {aside}
      </header>
      {children}
    </section>
  );
}

export interface Crumb {
  readonly to: string;
  readonly text: string;
}

/** Head of a page: where it belongs, its name, its state, and what can be done. Names the tab, too. */
export function Title({
  crumbs = [],
  title,
  state,
  children,
  tab,
}: {
  readonly crumbs?: readonly Crumb[];
  readonly title: string;
  readonly state?: ReactNode;
  readonly children?: ReactNode;
  readonly tab?: string;
}): ReactNode {
  useEffect(() => {
    document.title = `${tab ?? title} · Vivarium`;
  }, [tab, title]);
  return (
    <header className="title">
      {crumbs.length > 0 && (
        <nav className="crumbs" aria-label="Where this page belongs">
          {crumbs.map(({ to, text }) => (
            <Link key={to} to={to} className="cut">
              {text} <span aria-hidden="true">/</span>
            </Link>
          ))}
        </nav>
      )}
      <div className="row wraps">
        <h1 className="grow">{title}</h1>
        {state}
      </div>
      {children}
    </header>
  );
}
