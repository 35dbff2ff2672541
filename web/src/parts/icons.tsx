/** Small drawings of 16 by 16, in the colour of the text around them. */
import type { ReactNode } from "react";

const PATHS = {
  home: "M2.5 7 8 2.5 13.5 7v6a.5.5 0 0 1-.5.5H9.5v-4h-3v4H3a.5.5 0 0 1-.5-.5z",
  work: "M3 4h10M3 8h10M3 12h6",
  machine: "M2.5 3.5h11v6h-11zM6 12.5h4M8 9.5v3",
  automation: "M8.500 1.500 3.500 9h4l-.5 5.500 5-7.500h-4z",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14",
  question: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM6.3 6.3a1.7 1.7 0 1 1 2.5 1.6c-.5.3-.8.6-.8 1.1M8 11h.01",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  check: "M3 8.5 6.5 12 13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  right: "M6 3.5 10.5 8 6 12.5",
  back: "M10 3.5 5.5 8l4.5 4.5",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  folder: "M2 4.5h4l1.5 1.5H14v7H2z",
  undo: "M5.5 3 2.5 6l3 3M3 6h6a4 4 0 0 1 0 8H7",
  warning: "M8 2.5 14.5 13.5h-13zM8 6.5v3.2M8 11.6h.01",
  tool: "M9.5 3.2a3 3 0 0 0-3.9 3.9L2.5 10.2v3.3h3.3l3.1-3.1a3 3 0 0 0 3.9-3.9L11 8.3 9.2 7.7 8.6 6z",
  person: "M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8ZM3 14c.4-2.6 2.5-4 5-4s4.6 1.4 5 4",
  agent: "M4 5.500h8v7H4zM8 5.500v-3M6.3 8.500v1M9.7 8.500v1",
  terminal: "M2.5 3.500h11v9h-11zM5 6.5 7 8 5 9.500M8.5 10h3",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }): ReactNode {
  return (
    <svg
      className="icon"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
