/** A request that waits while a person is asked. An approval is used at once by the request that waits. */
import type { Approvals, SandboxQuestion } from "./approvals.ts";

export type PersonsAnswer =
  | { readonly answer: "yes" | "no" | "none yet"; readonly approval: string }
  /** So many questions of the sandbox wait that it gets no more. */
  | { readonly answer: "too many"; readonly waiting: number }
  /** Another request has used the approval: the person must be asked again. */
  | { readonly answer: "again" };

/** `patience` ends the waiting, `signal` says that the one who asks is gone. */
export async function askPerson(
  approvals: Approvals,
  question: SandboxQuestion,
  { patience, signal, asked: whenAsked }: { readonly patience: AbortSignal; readonly signal?: AbortSignal | undefined; asked?: () => void },
): Promise<PersonsAnswer> {
  const no = await approvals.denial(question);
  if (no !== undefined) return { answer: "no", approval: no.id };
  const waiting = await approvals.tooMany(question.sandbox, ({ kind, target }) => kind === question.kind && target === question.target);
  if (waiting !== undefined) return { answer: "too many", waiting };
  const { id: approval } = await approvals.ask(question);
  whenAsked?.();
  const { state } = await approvals.wait(approval, patience);
  // The request has ended: the approval stays for the next one.
  if (signal?.aborted !== true && (await approvals.use(question))) return { answer: "yes", approval };
  if (state === "denied" || state === "expired") return { answer: "no", approval };
  return patience.aborted ? { answer: "none yet", approval } : { answer: "again" };
}
