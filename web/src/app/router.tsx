/** Addresses and pages: one object, one address. Paths are those of PAGES in the schema of routes. */
import { useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent, type ReactNode } from "react";

const changed = new EventTarget();

function subscribe(listener: () => void): () => void {
  addEventListener("popstate", listener);
  changed.addEventListener("change", listener);
  return () => {
    removeEventListener("popstate", listener);
    changed.removeEventListener("change", listener);
  };
}

/** The address of the link that has the focus: it gets the focus again when the person comes back. */
function focusedAddress(): string | null {
  return document.activeElement?.getAttribute("href") ?? null;
}

const RESTORE_MS = 3_000;

/** Gives the focus back to the link that led away, once the page has drawn it. */
export function restoreFocus(): void {
  const { focus } = (history.state ?? {}) as { readonly focus?: string | null };
  if (typeof focus !== "string") return;
  const until = performance.now() + RESTORE_MS;
  const look = (): void => {
    const link = document.querySelector<HTMLElement>(`main a[href="${CSS.escape(focus)}"]`);
    if (link !== null) link.focus();
    else if (performance.now() < until) requestAnimationFrame(look);
  };
  look();
}

export function go(to: string, options: { readonly replace?: boolean; readonly keep?: boolean } = {}): void {
  if (options.replace === true) history.replaceState(history.state, "", to);
  else {
    history.replaceState({ focus: focusedAddress() }, "");
    history.pushState(null, "", to);
  }
  changed.dispatchEvent(new Event("change"));
  if (options.replace !== true && options.keep !== true) scrollTo(0, 0);
}

/** Path and query of the address, as they change. */
export function useAddress(): { readonly parts: readonly string[]; readonly query: URLSearchParams; readonly path: string } {
  const href = useSyncExternalStore(subscribe, () => location.pathname + location.search);
  const url = new URL(href, location.origin);
  return { path: url.pathname, parts: url.pathname.split("/").slice(1).map(decodeURIComponent), query: url.searchParams };
}

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & {
  readonly to: string;
  /** Changes what the page shows, and leaves it where it is scrolled to. */
  readonly keep?: boolean;
  readonly children: ReactNode;
};

/** A link inside the dashboard; with ctrl, or another button, the browser does what it always does. */
export function Link({ to, keep = false, children, onClick, ...rest }: LinkProps): ReactNode {
  const follow = (event: MouseEvent<HTMLAnchorElement>): void => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to, { keep });
  };
  return (
    <a href={to} onClick={follow} {...rest}>
      {children}
    </a>
  );
}
