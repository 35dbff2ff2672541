/** The one place from which automations tell people something: an event, which channels of notifications listen to. */
import type { Change } from "../../base/store/store.ts";

export interface Notice {
  /** done: as it should be. question: a person has to decide. alert: something is wrong. */
  readonly kind: "done" | "question" | "alert";
  readonly title: string;
  readonly text: string;
  /** Path of the page that shows more. */
  readonly link: string;
  readonly project: string;
}

export async function tell(change: Pick<Change, "event">, notice: Notice): Promise<void> {
  await change.event("automation.notice", null, { ...notice });
}
