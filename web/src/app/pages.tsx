/** Which page an address leads to. Each is loaded when it is opened first. */
import { lazy, type ComponentType, type LazyExoticComponent } from "react";
import type { PAGES } from "../../../src/base/schema/routes.ts";

export interface PageProps {
  /** Parts of the path behind the page's own. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}

type Page = LazyExoticComponent<ComponentType<PageProps>>;

export const HOME: Page = lazy(() => import("../pages/home.tsx"));

export const PAGE: Readonly<Record<(typeof PAGES)[number], Page>> = {
  work: lazy(() => import("../pages/work.tsx")),
  run: lazy(() => import("../pages/run.tsx")),
  experiment: lazy(() => import("../pages/experiment.tsx")),
  review: lazy(() => import("../pages/review.tsx")),
  sandbox: lazy(() => import("../pages/sandbox.tsx")),
  machine: lazy(() => import("../pages/machine.tsx")),
  automation: lazy(() => import("../pages/automation.tsx")),
  firing: lazy(() => import("../pages/firing.tsx")),
  report: lazy(() => import("../pages/report.tsx")),
  "vnc.html": lazy(() => import("../pages/vnc.tsx")),
  lab: lazy(() => import("../pages/lab.tsx")),
  question: lazy(() => import("../pages/question.tsx")),
};
