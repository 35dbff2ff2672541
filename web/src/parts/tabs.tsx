/** Parts of a page. On a phone there are more of them than fit: the one that is shown is brought into sight. */
import { useEffect, useRef, type ReactNode } from "react";
import { Link } from "../app/router.tsx";

interface Tab {
  readonly to: string;
  readonly text: string;
  readonly isShown: boolean;
}

export function Tabs({
  label,
  tabs,
  keep = false,
}: {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly keep?: boolean;
}): ReactNode {
  const nav = useRef<HTMLElement>(null);
  const shown = tabs.find(({ isShown }) => isShown)?.to;
  useEffect(() => {
    const bring = (): void => nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    bring();
    addEventListener("resize", bring);
    return () => removeEventListener("resize", bring);
  }, [shown]);
  return (
    <nav className={keep ? "tabs small" : "tabs"} aria-label={label} ref={nav}>
      {tabs.map(({ to, text, isShown }) => (
        <Link key={to} to={to} keep={keep} aria-current={isShown ? "page" : undefined}>
          {text}
        </Link>
      ))}
    </nav>
  );
}

/** A name as a title. */
export function asTitle(name: string): string {
  return name.replace(/^./, (letter) => letter.toUpperCase());
}
