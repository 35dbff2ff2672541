/** Style and script of the documentation page. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1d2733; --paper: #fbfbf9; --muted: #66717e; --line: #dfe3e6; --card: #fff; --accent: #1f7a54; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ea; --paper: #12171b; --muted: #93a0aa; --line: #2a333a; --card: #182027; --accent: #5cc793; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem 6rem; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.9rem; letter-spacing: -0.02em; }
h2 { margin: 2.5rem 0 0.75rem; font-size: 1.15rem; text-transform: capitalize; }
h4 { margin: 1rem 0 0.35rem; font-size: 0.8rem; text-transform: uppercase; letter-spacing: 0.06em; color: var(--muted); }
a { color: var(--accent); }
code { font: 0.875em/1.4 ui-monospace, monospace; }
pre { margin: 0.5rem 0; padding: 0.7rem 0.9rem; border: 1px solid var(--line); border-radius: 8px; background: var(--card); overflow-x: auto; }
.muted { color: var(--muted); font-weight: 400; font-size: 0.85em; }
nav { display: flex; flex-wrap: wrap; gap: 0.4rem 1rem; margin: 0.5rem 0 1rem; text-transform: capitalize; }
input { width: 100%; padding: 0.6rem 0.8rem; border: 1px solid var(--line); border-radius: 8px; background: var(--card); color: inherit; font: inherit; }
.operation { border: 1px solid var(--line); border-radius: 8px; background: var(--card); margin: 0.4rem 0; }
.operation[hidden], section[hidden] { display: none; }
summary { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0.2rem 0.75rem; padding: 0.55rem 0.8rem; cursor: pointer; list-style: none; }
summary::-webkit-details-marker { display: none; }
.verb { min-width: 3.6rem; font: 600 0.75rem/1.4 ui-monospace, monospace; color: var(--accent); }
.verb.delete { color: #c2493d; } .verb.post, .verb.put { color: #b0761b; } .verb.ws, .verb.any { color: #6f62c9; }
.path { font-weight: 600; overflow-wrap: anywhere; }
.about { color: var(--muted); margin-left: auto; }
.inside { padding: 0 0.8rem 0.9rem; border-top: 1px solid var(--line); overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 0.92rem; }
td { padding: 0.35rem 0.75rem 0.35rem 0; vertical-align: top; border-bottom: 1px solid var(--line); }
tr:last-child > td { border-bottom: 0; }
td table { margin: 0.4rem 0; }
@media (max-width: 45rem) { .about { margin-left: 0; width: 100%; } }
`;

export const SCRIPT = `
const filter = document.getElementById("filter");
const show = () => {
  const words = filter.value.toLowerCase().split(/\\s+/).filter(Boolean);
  for (const section of document.querySelectorAll("section")) {
    let any = false;
    for (const item of section.querySelectorAll(".operation")) {
      item.hidden = !words.every((word) => item.dataset.text.includes(word));
      any ||= !item.hidden;
    }
    section.hidden = !any;
  }
};
filter.addEventListener("input", show);
const open = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
};
addEventListener("hashchange", open);
open();
`;
