/** The audit trail as a story: when, who, what, and by whose leave. */
import type { AuditRecord } from "../schema/audit.ts";
import type { Colour, Screen } from "./screen.ts";
import { clean, cut, width } from "./text.ts";

const WHO = 18;
const COLOURS: Readonly<Record<AuditRecord["label"], Colour>> = {
  DENIED: "red",
  APPROVED: "green",
  AUTONOMOUS: "yellow",
  "AUTONOMOUS (whitelisted)": "cyan",
  RECORDED: "dim",
};

export class AuditStory {
  readonly #screen: Screen;
  readonly #names: ReadonlyMap<string, string>;
  #day = "";

  constructor(screen: Screen, { sandboxes }: { readonly sandboxes: readonly { readonly id: string; readonly name: string }[] }) {
    this.#screen = screen;
    this.#names = new Map(sandboxes.map(({ id, name }) => [id, name]));
  }

  /** One line; before the first of a day, the day. */
  tell(record: AuditRecord): void {
    const { paint } = { paint: this.#screen.paint.bind(this.#screen) };
    const [day, time] = localTime(record.at);
    if (day !== this.#day) this.#screen.print(paint("bold", day));
    this.#day = day;
    const who = cut(this.#who(record), WHO);
    const label = paint(COLOURS[record.label], `[${record.label}]`);
    const why = this.#why(record);
    this.#screen.print(
      `${paint("dim", time)}  ${who}${" ".repeat(WHO - width(who))}  ${this.#what(record)} ${label}${why === "" ? "" : paint("dim", `  ${why}`)}`,
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

  /** What a person does to a sandbox says to which one, unless that is all there is to say. */
  #what({ actor, action, target, sandbox }: AuditRecord): string {
    const name = sandbox === null ? "" : clean(this.#named(sandbox));
    const about = actor.kind === "person" && name !== "" && name !== target ? ` in ${name}` : "";
    return target === "" ? `${clean(action)}${about}` : `${clean(action)}${about}: ${clean(target)}`;
  }

  #why({ rule, reason, clockBack }: AuditRecord): string {
    return [
      rule === null ? "" : `rule ${clean(rule)}`,
      reason === null ? "" : clean(reason),
      clockBack ? "(the clock had been set back)" : "",
    ]
      .filter((text) => text !== "")
      .join("; ");
  }
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
