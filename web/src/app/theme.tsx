/** Light, dark, or as the system says. */
import { useState, type ReactNode } from "react";

const PLACE = "viv-theme";
const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

function kept(): Theme {
  const text = localStorage.getItem(PLACE);
  return THEMES.find((theme) => theme === text) ?? "system";
}

export function applyTheme(theme: Theme = kept()): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function ThemeChoice({ plain = false }: { readonly plain?: boolean }): ReactNode {
  const [theme, setTheme] = useState(kept);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
  const change = (): void => {
    localStorage.setItem(PLACE, next);
    applyTheme(next);
    setTheme(next);
  };
  return (
    <button type="button" className={plain ? "button plain small muted" : "button small"} onClick={change} title={`Change to ${next}`}>
      {theme} theme
    </button>
  );
}
