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

export function go(to: string, options: { readonly replace?: boolean } = {}): void {
  if (options.replace === true) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  changed.dispatchEvent(new Event("change"));
  if (options.replace !== true) scrollTo(0, 0);
}

/** Path and query of the address, as they change. */
export function useAddress(): { readonly parts: readonly string[]; readonly query: URLSearchParams; readonly path: string } {
  const href = useSyncExternalStore(subscribe, () => location.pathname + location.search);
  const url = new URL(href, location.origin);
  return { path: url.pathname, parts: url.pathname.split("/").slice(1).map(decodeURIComponent), query: url.searchParams };
}

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & { readonly to: string; readonly children: ReactNode };

/** A link inside the dashboard; with ctrl, or another button, the browser does what it always does. */
export function Link({ to, children, onClick, ...rest }: LinkProps): ReactNode {
  const follow = (event: MouseEvent<HTMLAnchorElement>): void => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a href={to} onClick={follow} {...rest}>
      {children}
    </a>
  );
}
