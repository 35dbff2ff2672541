/** The audit trail as lines for people: when, who, what, and who or which rule allowed it. */
import type { AuditRecord } from "../../base/schema/audit.ts";
import type { Colour, Screen } from "./screen.ts";
import { clean, cut, plural, width } from "./text.ts";

const WHO = 18;
const TIME = 8;
const LEAST_WHAT = 30;
const COLOURS: Readonly<Record<AuditRecord["label"], Colour>> = {
  DENIED: "red",
  APPROVED: "green",
  AUTONOMOUS: "yellow",
  "AUTONOMOUS (whitelisted)": "cyan",
  RECORDED: "dim",
};

interface NamedSandbox {
  readonly id: string;
  readonly name: string;
}

export class AuditStory {
  readonly #screen: Screen;
  readonly #names: Map<string, string>;
  #day = "";

  constructor(screen: Screen, sandboxes: readonly NamedSandbox[]) {
    this.#screen = screen;
    this.#names = new Map(sandboxes.map(({ id, name }) => [id, name]));
  }

  /** Learns the names of removed sandboxes from the records about them. */
  learn(records: readonly AuditRecord[]): void {
    for (const { sandbox, actor, action, target } of records) {
      if (sandbox === null || this.#names.has(sandbox)) continue;
      if (action === "sandbox.create" || action === "sandbox.fork" || action === "sandbox.remove") this.#names.set(sandbox, target);
      else if (actor.kind === "agent" && actor.name !== sandbox) this.#names.set(sandbox, actor.name);
    }
  }

  /** One line; before the first of a day, the day. */
  tell(record: AuditRecord): void {
    const [day, time] = localTime(record.at);
    if (day !== this.#day) this.#screen.print(this.#screen.paint("bold", day));
    this.#day = day;
    const label = `[${record.label}]`;
    const who = cut(this.#who(record), WHO);
    const why = this.#why(record);
    const what = this.#what(record);
    const room = (this.#screen.columns ?? Infinity) - TIME - WHO - label.length - 5;
    const shown = cut(what, Math.max(LEAST_WHAT, room));
    this.#screen.print(
      [
        `${this.#screen.paint("dim", time)}  ${who}${" ".repeat(WHO - width(who))}  ${shown} ${this.#screen.paint(COLOURS[record.label], label)}`,
        ...(why === "" ? [] : [this.#screen.paint("dim", why)]),
      ].join("  "),
    );
  }

  #named(id: string): string {
    return this.#names.get(id) ?? id;
  }

  /** A person needs no name: there is one. */
  #who({ actor }: AuditRecord): string {
    if (actor.kind === "person") return actor.name === "owner" ? "you" : clean(actor.name);
    if (actor.kind === "agent") return `agent ${clean(this.#named(actor.name))}`;
    return actor.kind;
  }

  /** What a person does in a sandbox says in which one, unless that is all there is to say. */
  #what({ actor, action, target, sandbox }: AuditRecord): string {
    const name = sandbox === null ? "" : this.#named(sandbox);
    const about = actor.kind === "person" && name !== "" && name !== target ? ` in ${clean(name)}` : "";
    return target === "" ? `${clean(action)}${about}` : `${clean(action)}${about}: ${clean(target)}`;
  }

  #why({ rule, reason, clockBack, action, arguments: details }: AuditRecord): string {
    const parts = [
      action.startsWith("promotion.") ? promoted(details) : "",
      rule === null ? "" : `rule ${clean(rule)}`,
      reason === null ? "" : clean(reason),
      clockBack ? "the clock had been set back" : "",
    ];
    return parts.filter((text) => text !== "").join("; ");
  }
}

function promoted(details: AuditRecord["arguments"]): string {
  const { state, files } = (details ?? {}) as { readonly state?: unknown; readonly files?: unknown };
  return [typeof state === "string" ? clean(state) : "", typeof files === "number" ? plural(files, "file") : ""]
    .filter((text) => text !== "")
    .join(", ");
}

function localTime(iso: string): [day: string, time: string] {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return ["", clean(iso)];
  const two = (number: number): string => String(number).padStart(2, "0");
  return [
    `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`,
    `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`,
  ];
}
