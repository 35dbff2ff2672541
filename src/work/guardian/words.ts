/** What the guardian says to agents and to persons. */
import type { Concern, DetectorName, Sighting } from "./finding.ts";

/** What an agent can do about it. */
const ADVICE: Readonly<Record<DetectorName, string>> = {
  silence: "If you are there, go on with the task, or say what you wait for.",
  repeat: "Doing it once more will not change it. Find out why it comes out so, try another way, or say what blocks you.",
  alternation: "These steps undo each other or lead nowhere. Decide on one way, or say what blocks you.",
  same_error: "Read the error again and look for its cause instead of its place. Try another way, or say what blocks you.",
  no_progress: "Sum up what you know, decide on the next change, and make it; or say what blocks you.",
  monologue: "Do the next step with a tool, or end your turn.",
  spending: "Sum up what you know, decide on the next change, and make it; or say what blocks you.",
  drift: "Go back to the task as it was given. If what you do belongs to it, say why.",
  damage: "Put these files back as they were.",
  flood: "Do less at once, and wait for what you began.",
  budget: "Keep the rest for the most important part.",
  steps: "Keep the rest for the most important part.",
  disk: "Remove what you no longer need, such as build output.",
  memory: "End programs that you no longer need, or do less at once.",
};

const MATTERS: Readonly<Record<Concern, string>> = {
  stuck: "The agent seems to be stuck.",
  drift: "The agent seems to have left its task.",
  damage: "The agent changed what it must leave alone.",
  flood: "The agent does very much at once.",
  near_limit: "The run is near one of its limits.",
  low_space: "The sandbox is short of space.",
  limit_reached: "The run has reached one of its limits.",
};

export function messageFor({ detector, evidence }: Sighting): string {
  return `The guardian of this run noticed: ${evidence} ${ADVICE[detector]}`;
}

export function questionFor({ concern }: Sighting): string {
  return `${MATTERS[concern]} Shall it go on as it is, or be stopped with its work kept?`;
}

export function afterRollback({ detector, evidence }: Sighting): string {
  return `The guardian of this run brought the files back to an earlier snapshot, because: ${evidence} ${ADVICE[detector]}`;
}

export function restartContext({ detector, evidence }: Sighting): string {
  return `An agent worked on this before you and was ended, because: ${evidence} ${ADVICE[detector]}`;
}

export function reasonFor({ concern, evidence }: Sighting): string {
  return `${MATTERS[concern]} ${evidence}`;
}
