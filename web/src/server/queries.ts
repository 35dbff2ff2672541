/** What pages know of the server: kept while it is shown, and asked for again when an event says that it changed. */
import { QueryClient, useMutation, useQuery, type UseMutationResult, type UseQueryResult } from "@tanstack/react-query";
import { useRef, useSyncExternalStore } from "react";
import type { InputOf, OperationName, OutputOf } from "../../../src/base/schema/contracts.ts";
import { VivError } from "../../../src/base/schema/errors.ts";
import type { VivEvent } from "../../../src/base/schema/event.ts";
import { call } from "./client.ts";
import { live, type LiveState } from "./live.ts";

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // Events say when something is old; an answer is asked for again when its page is opened.
      staleTime: 1_000,
      gcTime: 60_000,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: (failures, error) => error instanceof VivError && error.code === "server_unreachable" && failures < 2,
    },
  },
});

/** Which operations an event makes old, by the first word of its type. */
const TOUCHED: Readonly<Record<string, readonly OperationName[]>> = {
  sandbox: ["listSandboxes", "findSandbox", "inspectSandbox", "sandboxStatus", "status", "diffSandbox"],
  command: ["listCommands"],
  snapshot: ["listSnapshots", "inspectSandbox"],
  experiment: ["listExperiments", "inspectExperiment"],
  run: ["listRuns", "inspectRun", "listRunMessages"],
  promotion: ["listPromotions", "inspectPromotion", "listApprovals", "inspectApproval", "inspectExperiment", "listExperiments"],
  approval: ["listApprovals", "inspectApproval", "listRuns"],
  policy: ["listRules", "inspectPolicy"],
  automation: ["listAutomations", "inspectAutomation", "listFirings", "reportFirings"],
  firing: ["listFirings", "inspectFiring", "listAutomations", "inspectAutomation", "reportFirings"],
  network: ["inspectNetwork", "listEffects"],
  model: ["usage", "listRuns", "inspectRun"],
  server: ["status", "doctor"],
};

const AGAIN_MS = 400;
const due = new Set<string>();
const rested = new Map<string, number>();
let timer: number | undefined;

function refresh(): void {
  timer = undefined;
  const now = Date.now();
  for (const name of due) {
    // A burst of events asks for each answer a few times a second, not once an event.
    if (now - (rested.get(name) ?? 0) < AGAIN_MS) continue;
    due.delete(name);
    rested.set(name, now);
    void queries.invalidateQueries({ queryKey: [name] });
  }
  if (due.size > 0) timer = window.setTimeout(refresh, AGAIN_MS);
}

/** How long answers may take after the connection was made anew, one time after the other. */
const PATIENCE_MS = [4_000, 8_000, 16_000];
let watch: number | undefined;

/** Browsers ask over connections that were open before, also where those died without a word: a question that gets no answer is asked anew. */
async function askAnew(times = 0): Promise<void> {
  clearTimeout(watch);
  const unanswered = new Set(queries.getQueryCache().findAll({ fetchStatus: "fetching" }));
  await queries.cancelQueries({ predicate: (query) => unanswered.has(query) });
  void queries.invalidateQueries(times === 0 ? {} : { predicate: (query) => unanswered.has(query) });
  const patience = PATIENCE_MS[times];
  if (patience === undefined) return;
  watch = window.setTimeout(() => void (queries.isFetching() > 0 && askAnew(times + 1)), patience);
}

/** An empty batch says that the connection is new: then everything may be old. */
function hear(batch: readonly VivEvent[]): void {
  if (batch.length === 0) return void askAnew();
  for (const { type } of batch) for (const name of TOUCHED[type.split(".")[0] ?? ""] ?? []) due.add(name);
  timer ??= window.setTimeout(refresh, 0);
}

export function startListening(): void {
  live.listen(hear);
  live.start();
}

interface AskOptions {
  /** Milliseconds after which it is asked for again, while the page is in sight. For what changes without an event, such as files. */
  readonly every?: number;
  readonly enabled?: boolean;
}

/** Of a large project, an answer may take seconds: asking for it takes a fifth of the time at most. */
const REST = 4;

/** An answer that is asked for by a function. The first part of the key is the operation whose events make it old. */
export function useAsked<Data>(
  key: readonly [OperationName, ...unknown[]],
  ask: (signal: AbortSignal) => Promise<Data>,
  { every, enabled }: AskOptions = {},
): UseQueryResult<Data> {
  const took = useRef(0);
  return useQuery({
    queryKey: key,
    queryFn: async ({ signal }) => {
      const began = performance.now();
      const answer = await ask(signal);
      took.current = performance.now() - began;
      return answer;
    },
    ...(every === undefined ? {} : { refetchInterval: () => Math.max(every, took.current * REST) }),
    ...(enabled === undefined ? {} : { enabled }),
  });
}

/** The answer to an operation that only reads. */
export function useAnswer<Name extends OperationName>(
  name: Name,
  input: InputOf<Name>,
  options: AskOptions = {},
): UseQueryResult<OutputOf<Name>> {
  return useAsked([name, input], (signal) => call(name, input, signal), options);
}

/** Something that a person does. What it changed is asked for again. */
export function useAct<Name extends OperationName>(name: Name): UseMutationResult<OutputOf<Name>, Error, InputOf<Name>> {
  return useMutation({
    mutationFn: (input: InputOf<Name>) => call(name, input),
    onSettled: () => queries.invalidateQueries(),
  });
}

export function useLive(): LiveState {
  return useSyncExternalStore(
    (watcher) => live.watch(watcher),
    () => live.state,
  );
}
