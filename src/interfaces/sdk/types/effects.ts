// Made from the contracts by scripts/sdk-types.ts.

/** A request that can change something outside. */
export interface Effect {
  /** Id of the entry. */
  id: string;
  /** ISO time at which it was asked for. */
  at: string;
  /** Id of the sandbox. */
  sandbox: string;
  method: string;
  /** Where it goes. */
  url: string;
  /** Length of what was sent, where it was held. */
  bodyBytes: number | null;
  /** SHA-256 of what was sent, where it was held. */
  bodyHash: string | null;
  /** sent has no answer yet, or none that is known; held waits for a person, or was given up while it did. */
  state: "sent" | "answered" | "broken" | "held" | "denied";
  /** Id of the question, where a person was asked. */
  approval: string | null;
  /** The receipt: the answer's status. */
  status: number | null;
  answeredAt: string | null;
}
