/**
 * The port of a way to a person. A channel sends one notification at a time, and is asked for several at once.
 *
 * **What it gets** is one line of plain text each, short, without control characters (`text.ts`): parts of it come from sandboxes. A
 * channel escapes what its own form gives a meaning to, such as the markup of a desktop's notifications.
 *
 * **What it answers.** `send` resolves with the fate of this one try and never waits longer than the signal. It throws only for
 * defects, which count as a try that may go well later. The same notification may come again after a crash between sending and
 * noting it: it has the same `id` then, which the channel passes on where its receiver can tell by it.
 */
import type { Notification } from "../../base/schema/notification.ts";

export interface Message extends Notification {
  /** Address of the dashboard's page, as far as the server knows its own. */
  readonly url: string;
}

export type Outcome =
  | { readonly sent: true }
  | {
      readonly sent: false;
      /** One sentence. */
      readonly reason: string;
      /** Whether another try makes sense. */
      readonly again: boolean;
      /** What the receiver asks to wait for before that. */
      readonly afterMs?: number | undefined;
      /** There is no such receiver any more. */
      readonly gone?: true;
    };

export interface Channel {
  send(message: Message, signal: AbortSignal): Promise<Outcome>;
}

export const SENT: Outcome = { sent: true };
