/** Sandboxes that reality has moved away from: where both changed the same files, and where only reality did. */
import { useQueries } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { SandboxStatus } from "../../../src/base/schema/files.ts";
import type { Sandbox } from "../../../src/base/schema/sandbox.ts";
import { call } from "../server/client.ts";
import { Row } from "./rows.tsx";
import { Ago } from "./parts.tsx";
import { plural } from "./words.ts";

/** Reality moves without an event. */
const LOOK_MS = 10_000;
/** A look at each costs the server time: those that were made last. */
const MOST_LOOKED_AT = 20;
const MOST_NAMED = 3;

/** Clones of an experiment end with it, and its page says how they stand. */
function isLookedAt({ state, labels }: Sandbox): boolean {
  return (state === "running" || state === "paused") && labels["experiment"] === undefined;
}

/** How sandboxes stand to reality: those that are behind it. */
export function useBehind(sandboxes: readonly Sandbox[]): readonly SandboxStatus[] {
  const looked = sandboxes
    .filter(isLookedAt)
    .toSorted((one, other) => (one.createdAt > other.createdAt ? -1 : 1))
    .slice(0, MOST_LOOKED_AT);
  return useQueries({
    queries: looked.map(({ id }) => ({
      // Not the name of the operation: events of sandboxes come by the hundred, and say nothing of reality.
      queryKey: ["behind", id],
      queryFn: ({ signal }: { readonly signal: AbortSignal }) => call("sandboxStatus", { sandbox: id }, signal),
      refetchInterval: LOOK_MS,
    })),
    combine: (answers) => answers.flatMap(({ data }) => (data?.stale === true ? [data] : [])),
  });
}

export function inBoth({ changes }: SandboxStatus): readonly string[] {
  return changes.filter(({ changedInside }) => changedInside).map(({ path }) => path);
}

function named(paths: readonly string[]): string {
  const more = paths.length - MOST_NAMED;
  return `${paths.slice(0, MOST_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

export function BehindRow({ standing }: { readonly standing: SandboxStatus }): ReactNode {
  const { name, changes, more, changedInside, takenAt } = standing;
  const both = inBoth(standing);
  const moved = `${more ? "more than " : ""}${plural(changes.length, "file")} moved in reality`;
  return (
    <Row
      to={both.length > 0 ? `/review/${name}` : `/sandbox/${name}`}
      tone="waiting"
      word={both.length > 0 ? "conflict" : "stale"}
      title={name}
      under={
        both.length > 0
          ? `changed here and in reality: ${named(both)} · ${moved}`
          : `stale · ${moved}: ${named(changes.map(({ path }) => path))} · ${plural(changedInside, "file")} changed here`
      }
      end={<Ago at={takenAt} />}
    />
  );
}
