/** How far an automation may go: its own authority, within that of the user's config. Pure. */
import type { Authority } from "../../base/schema/automation.ts";
import { AUTHORITIES } from "../../base/schema/choices.ts";

/** The lesser of two. */
export function within(own: Authority, most: Authority): Authority {
  return AUTHORITIES.indexOf(own) <= AUTHORITIES.indexOf(most) ? own : most;
}

export function mayPromote(authority: Authority): boolean {
  return authority === "act-and-notify" || authority === "act-and-log";
}

/** Whether a person is told of something that went as it should. */
export function tells(authority: Authority): boolean {
  return authority !== "act-and-log";
}
