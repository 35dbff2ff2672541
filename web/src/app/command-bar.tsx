/** The command bar: every page, object and general action by a few letters. */
import { useEffect, useState, type KeyboardEvent, type ReactNode } from "react";
import { promotionTitle } from "../parts/rows.tsx";
import { baseName, firstLine } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";
import { Dialog } from "./keys.tsx";
import { go } from "./router.tsx";

interface Option {
  readonly text: string;
  readonly kind: string;
  readonly do: () => void;
}

const SHOWN = 12;

/** What the page can do: its buttons and the tabs of its objects, by their own words. */
function actionsOfPage(): readonly Option[] {
  const found = document.querySelectorAll<HTMLElement>(
    "main button:not(:disabled), main .tabs a, main a.button, main select, main textarea",
  );
  return [...found]
    .filter((element) => element.offsetParent !== null && element.closest(".command") === null)
    .map((element) => ({
      text: (element.getAttribute("aria-label") ?? element.textContent).trim(),
      kind: "on this page",
      do: () => {
        element.focus();
        if (!(element instanceof HTMLSelectElement)) element.click();
      },
    }))
    .filter(({ text }) => text !== "");
}

function useOptions(onHelp: () => void): readonly Option[] {
  // As the page was when the bar was opened.
  const [actions] = useState(actionsOfPage);
  const runs = useAnswer("listRuns", {}).data?.runs ?? [];
  const experiments = useAnswer("listExperiments", {}).data?.experiments ?? [];
  const sandboxes = useAnswer("listSandboxes", {}).data?.sandboxes ?? [];
  const questions = useAnswer("listApprovals", {}).data?.approvals ?? [];
  const promotions = useAnswer("listPromotions", { all: true }).data?.promotions ?? [];
  const automations = useAnswer("listAutomations", {}).data?.automations ?? [];
  const page = (text: string, to: string): Option => ({ text, kind: "page", do: () => go(to) });
  return [
    ...actions,
    ...questions.map((one): Option => ({
      text: `Answer: ${firstLine(one.target)}`,
      kind: "question",
      do: () => go(`/question/${one.id}`),
    })),
    page("Home", "/"),
    page("Questions", "/question"),
    page("Work", "/work"),
    page("Runs", "/work?show=runs"),
    page("Experiments", "/work?show=experiments"),
    page("Sandboxes", "/work?show=sandboxes"),
    page("Promotions", "/work?show=promotions"),
    page("Automations", "/automation"),
    page("Report: what automations did", "/report"),
    page("Machine", "/machine"),
    page("Costs", "/machine?show=costs"),
    page("Policy: what would the rules say?", "/machine?show=policy"),
    page("Audit trail", "/machine?show=audit"),
    page("Events", "/machine?show=events"),
    page("Doctor", "/machine?show=doctor"),
    page("Secrets", "/machine?show=secrets"),
    page("Settings: theme, browsers that are logged in", "/machine?show=settings"),
    ...runs.map((run): Option => ({ text: firstLine(run.task), kind: `run · ${run.agent}`, do: () => go(`/run/${run.id}`) })),
    ...experiments.map((one): Option => ({
      text: `${baseName(one.project)}: ${one.attempts.map(({ name }) => name).join(", ")}`,
      kind: "experiment",
      do: () => go(`/experiment/${one.id}`),
    })),
    ...automations.map((one): Option => ({ text: one.name, kind: "automation", do: () => go(`/automation/${one.id}`) })),
    ...sandboxes.map((box): Option => ({ text: box.name, kind: "sandbox", do: () => go(`/sandbox/${box.name}`) })),
    ...promotions.map((one): Option => ({ text: promotionTitle(one), kind: "promotion", do: () => go(`/review/${one.id}`) })),
    ...sandboxes.map((box): Option => ({
      text: `Terminal in ${box.name}`,
      kind: "sandbox",
      do: () => go(`/sandbox/${box.name}?show=terminal`),
    })),
    ...sandboxes.map((box): Option => ({ text: `Review the change of ${box.name}`, kind: "review", do: () => go(`/review/${box.name}`) })),
    { text: "Keys", kind: "help", do: onHelp },
  ];
}

/** All letters in order; nearer together and nearer to the beginning is better. */
function score(text: string, wanted: string): number {
  const low = text.toLowerCase();
  const at = low.indexOf(wanted);
  if (at >= 0) return at === 0 ? 0 : 1 + at / 100;
  let from = 0;
  for (const letter of wanted) {
    from = low.indexOf(letter, from) + 1;
    if (from === 0) return Number.POSITIVE_INFINITY;
  }
  return 10 + from / 100;
}

function Bar({ onClose, onHelp }: { readonly onClose: () => void; readonly onHelp: () => void }): ReactNode {
  const [wanted, setWanted] = useState("");
  const [at, setAt] = useState(0);
  const options = useOptions(onHelp);
  const found = options
    .map((option) => ({ option, score: score(`${option.text} ${option.kind}`, wanted.toLowerCase().trim()) }))
    .filter((one) => Number.isFinite(one.score))
    .toSorted((one, other) => one.score - other.score)
    .slice(0, SHOWN)
    .map(({ option }) => option);
  const choose = (option: Option | undefined): void => {
    if (option === undefined) return;
    onClose();
    option.do();
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else if (event.key === "Enter") choose(found[at]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog label="Go to or do" onClose={onClose}>
      <input
        className="field"
        role="combobox"
        aria-expanded="true"
        aria-controls="command-options"
        aria-activedescendant={`command-${at}`}
        aria-label="Go to or do"
        placeholder="Type a page, an object, or what you want to do"
        value={wanted}
        onChange={(event) => {
          setWanted(event.target.value);
          setAt(0);
        }}
        onKeyDown={press}
      />
      <ul className="options" id="command-options" role="listbox" aria-label="What fits">
        {found.map((option, index) => (
          <li
            key={`${option.kind} ${option.text} ${index}`}
            id={`command-${index}`}
            role="option"
            aria-selected={index === at}
            onMouseMove={() => setAt(index)}
            onClick={() => choose(option)}
          >
            <span className="cut">{option.text}</span>
            <span className="end">{option.kind}</span>
          </li>
        ))}
        {found.length === 0 && <li className="muted">Nothing fits.</li>}
      </ul>
    </Dialog>
  );
}

export function CommandBar({ onHelp }: { readonly onHelp: () => void }): ReactNode {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const press = (event: globalThis.KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      setOpen((was) => !was);
    };
    const show = (): void => setOpen(true);
    addEventListener("keydown", press);
    addEventListener("viv-command-bar", show);
    return () => {
      removeEventListener("keydown", press);
      removeEventListener("viv-command-bar", show);
    };
  }, []);
  return open ? <Bar onClose={() => setOpen(false)} onHelp={onHelp} /> : null;
}
