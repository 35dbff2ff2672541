// Made from the contracts by scripts/sdk-types.ts.

/** allow, ask a person, or deny. */
export type PolicyVerdict = "allow" | "ask" | "deny";

/** A rule that a person added by answering `always`. */
export interface AddedRule {
  /** Id of a question for a person. */
  id: string;
  /** Path of the project it holds for. */
  project: string;
  /** The very action that it allows. */
  rule: string;
  /** The sandbox that asked. */
  sandboxName: string | null;
  addedAt: string;
}

/** allow: do it, now and once. deny: don't. ask: a person has not answered yet. */
export interface ActionAnswer {
  verdict: PolicyVerdict;
  /** The rule that decided, such as `bash: npm *`. */
  rule: string;
  /** Why, in a sentence. */
  reason: string;
  /** What the action is made of; the strictest decides. */
  parts: ({
    /** This part of the action, as it runs. */
    command: string;
    verdict: PolicyVerdict;
    /** The rule that decided, such as `bash: npm *`. */
    rule: string;
    /** Why, in a sentence. */
    reason: string;
  })[];
  /** The question, where a person is asked: try the same action again once it is answered. */
  approval: {
    /** Id of a question for a person. */
    id: string;
    /** expired is a denial by silence; used was approved and has been done. */
    state: "waiting" | "approved" | "denied" | "expired" | "used";
    /** No answer by then is a denial. */
    deadline: string;
    /** The narrow rule that `always` would add; null where that can't be had. */
    always: string | null;
  } | null;
}

/** What is enforced for agents in a sandbox. */
export interface SandboxPolicy {
  /** Level or yolo level in effect. */
  title: string;
  /** As in effect. */
  autonomy: {
    level: 1 | 2 | 3 | null;
    yolo: 1 | 2 | 3 | 4 | null;
    /** What an agent is there for. */
    role: "worker" | "reviewer" | "coordinator";
  };
  /** Tools that the role has or lacks. */
  tools: { [name: string]: boolean };
  /** Whether it has tools that are not named. */
  otherTools: boolean;
  /** Tool calls that the run may make; null: as many as its task takes. */
  maxSteps: number | null;
  /** By tool; the most specific wins. */
  rules: { [name: string]: PolicyRule };
  /** Rules of a project that is not trusted: these only make a verdict stricter. */
  stricter: { [name: string]: PolicyRule };
  /** What a person allowed always. */
  always: string[];
  /** Hosts that no level opens. */
  production: string[];
  /** What is granted at run time without a person. */
  ceiling: {
    cpus: number;
    memoryBytes: number;
  };
  /** The same for AGENTS.md. */
  text: string;
}

/** A verdict, or patterns with `*` and a verdict each; the most specific wins. */
export type PolicyRule = PolicyVerdict | { [name: string]: PolicyVerdict };
