/** The keyboard: jumps, moving in lists, and the list of keys. */
import { useEffect, useRef, type ReactNode } from "react";
import { go, restoreFocus } from "./router.tsx";

const JUMPS: Readonly<Record<string, string>> = {
  h: "/",
  q: "/question",
  w: "/work",
  r: "/work?show=runs",
  e: "/work?show=experiments",
  a: "/automation",
  m: "/machine",
};
const JUMP_MS = 1_000;

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest(".xterm") !== null)
  );
}

/** Rows of lists take the focus one after the other. */
function move(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>("a.item, tr[tabindex], [data-row]")].filter((row) => row.offsetParent !== null);
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = rows[at === -1 ? (step === 1 ? 0 : rows.length - 1) : Math.min(Math.max(at + step, 0), rows.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

export function useKeys({ onHelp }: { readonly onHelp: () => void }): void {
  const help = useRef(onHelp);
  help.current = onHelp;
  useEffect(() => {
    let leader = 0;
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector('[role="dialog"]') !== null)
        return;
      const jump = JUMPS[event.key];
      if (performance.now() - leader < JUMP_MS && jump !== undefined) {
        leader = 0;
        go(jump);
      } else if (event.key === "g") leader = performance.now();
      else if (event.key === "j") move(1);
      else if (event.key === "k") move(-1);
      else if (event.key === "?") help.current();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    addEventListener("popstate", restoreFocus);
    return () => {
      removeEventListener("keydown", press);
      removeEventListener("popstate", restoreFocus);
    };
  }, []);
}

/** Closes on escape and on a press beside it; the focus goes back to where it was. */
export function Dialog({
  label,
  onClose,
  children,
}: {
  readonly label: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}): ReactNode {
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    frame.current?.querySelector<HTMLElement>("input, button")?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <div className="backdrop" onMouseDown={(event) => event.target === event.currentTarget && onClose()}>
      <div
        ref={frame}
        className="dialog"
        role="dialog"
        aria-modal="true"
        aria-label={label}
        onKeyDown={(event) => event.key === "Escape" && onClose()}
      >
        {children}
      </div>
    </div>
  );
}

const KEYS: readonly (readonly [keys: readonly string[], what: string])[] = [
  [["ctrl K"], "Go to any page or object, or do what this page can do"],
  [["g", "h"], "Home"],
  [["g", "q"], "Questions"],
  [["g", "w"], "Work"],
  [["g", "r"], "Runs"],
  [["g", "e"], "Experiments"],
  [["g", "a"], "Automations"],
  [["g", "m"], "Machine"],
  [["j", "k"], "Down and up in a list"],
  [["enter"], "Open what has the focus"],
  [["esc"], "Close"],
  [["?"], "This list"],
];

export function KeyList({ onClose }: { readonly onClose: () => void }): ReactNode {
  return (
    <Dialog label="Keys" onClose={onClose}>
      <div className="keys">
        {KEYS.map(([keys, what]) => (
          <div key={what} style={{ display: "contents" }}>
            <span>
              {keys.map((key) => (
                <span key={key}>
                  <kbd>{key}</kbd>{" "}
                </span>
              ))}
            </span>
            <span>{what}</span>
          </div>
        ))}
      </div>
      <button type="button" className="button plain" onClick={onClose}>
        Close
      </button>
    </Dialog>
  );
}
