/** The frame around every page. */
import { Suspense, useEffect, useState, type ReactNode } from "react";
import { Icon, type IconName } from "../parts/icons.tsx";
import { Failure, useNow } from "../parts/parts.tsx";
import { StateShape, type Tone } from "../parts/state.tsx";
import { useAnswer, useLive } from "../server/queries.ts";
import type { LiveState } from "../server/live.ts";
import { Catch } from "./catch.tsx";
import { CommandBar } from "./command-bar.tsx";
import { KeyList, useKeys } from "./keys.tsx";
import { Login } from "./login.tsx";
import { HOME, PAGE } from "./pages.tsx";
import { Link, useAddress } from "./router.tsx";
import { ThemeChoice } from "./theme.tsx";

const NAVIGATION: readonly { readonly to: string; readonly text: string; readonly icon: IconName; readonly pages: readonly string[] }[] = [
  { to: "/", text: "Home", icon: "home", pages: [""] },
  { to: "/question", text: "Questions", icon: "question", pages: ["question"] },
  { to: "/work", text: "Work", icon: "work", pages: ["work", "run", "experiment", "review", "sandbox"] },
  { to: "/automation", text: "Automations", icon: "automation", pages: ["automation", "firing", "report"] },
  { to: "/machine", text: "Machine", icon: "machine", pages: ["machine"] },
];

function seconds(since: number, now: number): string {
  return `${Math.max(1, Math.round((now - since) / 1000))} s`;
}

/** How fresh the page is, in words. */
function freshness(state: LiveState, now: number): { tone: Tone; text: string } {
  switch (state.kind) {
    case "live":
      return { tone: "passed", text: "Live" };
    case "connecting":
      return { tone: "running", text: "Connecting" };
    case "stale":
      return { tone: "waiting", text: `Stale since ${seconds(state.since, now)}` };
    case "offline":
      return { tone: "failed", text: `Offline since ${seconds(state.since, now)}` };
    case "replaying":
      return { tone: "running", text: `Replaying ${state.left} ${state.left === 1 ? "event" : "events"}` };
    case "logged-out":
      return { tone: "failed", text: "Logged out" };
  }
}

function Freshness(): ReactNode {
  const state = useLive();
  const { tone, text } = freshness(state, useNow());
  return (
    <span className={`state is-${tone}`} data-live={state.kind} role="status">
      <StateShape tone={tone} />
      {text}
    </span>
  );
}

function Banner(): ReactNode {
  const state = useLive();
  const now = useNow();
  if (state.kind === "offline")
    return (
      <div className="banner is-failed" role="alert">
        <Icon name="warning" />
        The server can't be reached since {seconds(state.since, now)}. What you see is from then; the page goes on by itself.
      </div>
    );
  if (state.kind === "stale")
    return (
      <div className="banner" role="alert">
        <Icon name="warning" />
        The server has said nothing for {seconds(state.since, now)}.
      </div>
    );
  return null;
}

function Side({ page }: { readonly page: string }): ReactNode {
  const questions = useAnswer("listApprovals", {});
  const waiting = questions.data?.approvals.length ?? 0;
  return (
    <aside className="side">
      <Link to="/" className="brand">
        <img src="/icon.svg" alt="" />
        Vivarium
      </Link>
      <button type="button" className="jump" onClick={() => dispatchEvent(new Event("viv-command-bar"))}>
        <Icon name="search" />
        Go to … <kbd>ctrl K</kbd>
      </button>
      <nav aria-label="Pages">
        {NAVIGATION.map(({ to, text, icon, pages }) => (
          <Link key={to} to={to} aria-current={pages.includes(page) ? "page" : undefined}>
            <Icon name={icon} />
            {text}
            {to === "/question" && waiting > 0 && <span className="count waiting">{waiting}</span>}
          </Link>
        ))}
      </nav>
      <footer>
        <Freshness />
        <ThemeChoice plain />
      </footer>
    </aside>
  );
}

export function Shell({ trouble }: { readonly trouble: string | undefined }): ReactNode {
  const { parts, query, path } = useAddress();
  const state = useLive();
  const [help, setHelp] = useState(false);
  const [page = "", ...rest] = parts;
  useKeys({ onHelp: () => setHelp(true) });
  useEffect(() => setHelp(false), [path]);
  if (state.kind === "logged-out") return <Login trouble={trouble} />;
  const Page = page === "" ? HOME : Object.hasOwn(PAGE, page) ? PAGE[page as keyof typeof PAGE] : undefined;
  return (
    <div className="shell">
      <Side page={page} />
      <div className="main">
        <div className="topbar">
          <img src="/icon.svg" alt="" />
          <span className="strong grow">Vivarium</span>
          <Freshness />
        </div>
        <Banner />
        <Catch key={path}>
          <Suspense fallback={<main className="page muted">Loading the page …</main>}>
            {Page === undefined ? (
              <main className="page">
                <Failure error={new Error(`There is no page ${path}.`)} />
              </main>
            ) : (
              <Page parts={rest} query={query} />
            )}
          </Suspense>
        </Catch>
      </div>
      <CommandBar onHelp={() => setHelp(true)} />
      {help && <KeyList onClose={() => setHelp(false)} />}
    </div>
  );
}
