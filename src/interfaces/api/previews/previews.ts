/** Ports inside sandboxes at origins of their own: `PORT-SANDBOX` below one name, for browsers that were let in. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline, type Duplex } from "node:stream";
import { z } from "zod";
import type { Streams } from "../../operations/operations.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import { LAB_DOOR, previewOrigin, previewPlace, type PreviewPlace, type PreviewSite } from "../../../base/schema/preview.ts";
import { ENTER_PATH } from "../../../base/schema/routes.ts";
import { join } from "../../../base/wire/wire.ts";
import { parse, readJson } from "../input.ts";
import { beginInside, firstAnswer, headText, type FirstAnswer } from "../inside-http.ts";
import { inwardHeaders, outwardHeaders } from "./headers.ts";
import { ancestorsPolicy, enterPage, pageHeaders, TROUBLE_HEADER, troublePage, type Trouble } from "./pages.ts";
import { checkPreviewSource, entranceCookie, visitorOf, type PreviewAccess, type PreviewVisitor } from "./visitor.ts";

const RESERVED = ENTER_PATH.slice(0, ENTER_PATH.lastIndexOf("/") + 1);
const EnterInput = z.strictObject({ ticket: z.string().min(1).max(128) });

/** How requests for previews come. */
export interface PreviewWays {
  readonly site: PreviewSite;
  /** The host that the browser asked for. */
  readonly host: string;
  /** Addresses of the dashboard. */
  readonly dashboards: readonly string[];
  readonly token: string;
}

/** One request at a preview's origin. */
interface Visit extends PreviewWays {
  readonly place: PreviewPlace;
  readonly origin: string;
  /** The origin as the program is told it. */
  readonly inside: string;
  readonly incoming: IncomingMessage;
  readonly switches: boolean;
}

/** What was asked could not be given, with what a person can do. */
class PreviewTrouble extends Error {
  readonly known: VivError;
  readonly trouble: Trouble;

  constructor(known: VivError, trouble: Partial<Trouble> = {}) {
    super(known.message, { cause: known });
    this.known = known;
    this.trouble = { title: known.message, remedy: known.remedy, ...trouble };
  }

  static from(error: unknown): PreviewTrouble {
    return error instanceof PreviewTrouble ? error : new PreviewTrouble(VivError.from(error));
  }
}

export class PreviewFront {
  readonly #streams: Streams;
  readonly #access: PreviewAccess;
  /** Connections of browsers, and the signal that cuts each off. */
  readonly #cut = new WeakMap<Duplex, AbortSignal>();

  readonly #answerMs: number;

  constructor(streams: Streams, access: PreviewAccess, answerMs: number = LIMITS.previewAnswerMs) {
    this.#streams = streams;
    this.#access = access;
    this.#answerMs = answerMs;
  }

  async request(incoming: IncomingMessage, outgoing: ServerResponse, ways: PreviewWays): Promise<VivError | undefined> {
    try {
      const visit = visitOf(incoming, ways, false);
      if (visit.incoming.url?.startsWith(RESERVED) === true) await this.#entrance(visit, outgoing);
      else await this.#pass(visit, outgoing);
      return undefined;
    } catch (error) {
      const trouble = PreviewTrouble.from(error);
      if (outgoing.headersSent) outgoing.destroy();
      else tell(incoming, outgoing, trouble, ways.dashboards);
      return trouble.known;
    }
  }

  /** Rejects where there is no switch. */
  async upgrade(incoming: IncomingMessage, socket: Duplex, early: Buffer, ways: PreviewWays): Promise<void> {
    try {
      const visit = visitOf(incoming, ways, true);
      const visitor = this.#admit(visit);
      const { request, first } = await this.#ask(visit, (asked) => {
        socket.once("close", () => asked.destroy());
        asked.end();
      });
      const { answer, inside } = first;
      const headers = outwardHeaders(answer, { ...visit, ...visitor, door: visit.place.door, ancestors: ancestorsPolicy(ways.dashboards) });
      if (inside === undefined) {
        socket.write(headText(answer, { ...headers, connection: "close" }));
        return void pipeline(answer, socket, () => request.destroy());
      }
      socket.write(headText(answer, { ...headers, connection: "Upgrade", upgrade: answer.headers.upgrade }));
      if (first.first !== undefined && first.first.length > 0) socket.write(first.first);
      if (early.length > 0) inside.write(early);
      join(socket, inside);
    } catch (error) {
      throw PreviewTrouble.from(error).known;
    }
  }

  async #entrance({ place, origin, site, dashboards, incoming }: Visit, outgoing: ServerResponse): Promise<void> {
    const path = incoming.url?.split("?")[0];
    if (path === ENTER_PATH && incoming.method === "GET") {
      outgoing.writeHead(200, pageHeaders(dashboards));
      return void outgoing.end(enterPage());
    }
    if (path !== ENTER_PATH || incoming.method !== "POST") throw new VivError("not_found", "The server has no such page here.");
    if (incoming.headers.origin !== origin) throw new VivError("forbidden_origin", "A link lets a browser in from its own page only.");
    const { ticket } = parse(EnterInput, await readJson(incoming));
    const { cookie, path: first, frame } = await this.#access.enter(ticket, place);
    const body = JSON.stringify({ path: first });
    outgoing.writeHead(200, {
      "content-type": "application/json",
      "cache-control": "no-store",
      "set-cookie": entranceCookie(cookie, frame, site),
    });
    outgoing.end(body);
  }

  /** The browser, which is in and may ask this; its connections end when it is out. */
  #admit({ place, site, dashboards, origin, incoming, switches }: Visit): PreviewVisitor {
    const visitor = visitorOf(this.#access, incoming, place, site);
    const framed = incoming.headers["sec-fetch-dest"] === "iframe";
    if (visitor === undefined)
      throw new PreviewTrouble(new VivError("unauthorized", "This browser was not let in to this preview."), {
        title: "This browser was not let in to this preview.",
        remedy: `Open it from the sandbox's page, or with \`${commandFor(place)}\`.${framed ? " If this browser keeps no cookies of frames, open the preview in a tab." : ""}`,
        link: { url: `${dashboards[0] ?? ""}/sandbox/${place.sandbox}?show=preview&door=${place.door}`, text: "Open the sandbox's page" },
      });
    checkPreviewSource(incoming, origin, switches);
    const { socket } = incoming;
    const { ending } = visitor;
    if (this.#cut.get(socket) !== ending) {
      this.#cut.set(socket, ending);
      const cut = (): void => void socket.destroy();
      ending.addEventListener("abort", cut, { once: true });
      socket.once("close", () => ending.removeEventListener("abort", cut));
    }
    return visitor;
  }

  async #pass(visit: Visit, outgoing: ServerResponse): Promise<void> {
    const { incoming, place, dashboards } = visit;
    const visitor = this.#admit(visit);
    const { request, first } = await this.#ask(visit, (asked) => {
      outgoing.once("close", () => asked.destroy());
      incoming.pipe(asked);
    });
    const { answer, inside } = first;
    if (inside !== undefined) {
      inside.destroy();
      throw new VivError("port_unreachable", "The program inside switched protocols without being asked.");
    }
    const headers = outwardHeaders(answer, { ...visit, ...visitor, door: place.door, ancestors: ancestorsPolicy(dashboards) });
    outgoing.writeHead(answer.statusCode ?? 502, headers);
    // What a program streams is seen as it comes, also before its first byte.
    outgoing.flushHeaders();
    pipeline(answer, outgoing, () => request.destroy());
  }

  async #ask(
    { place, token, origin, inside, incoming, switches }: Visit,
    send: (request: ReturnType<typeof beginInside>) => void,
  ): Promise<{ request: ReturnType<typeof beginInside>; first: FirstAnswer }> {
    const what = place.door === LAB_DOOR ? "JupyterLab" : `Port ${place.door}`;
    const connection = await this.#dial(place);
    const headers = inwardHeaders(incoming, { token, origin, inside, asLocalhost: place.door === LAB_DOOR });
    const request = beginInside(connection, incoming, { path: incoming.url ?? "/", headers, switches });
    const late = new AbortController();
    const timer = setTimeout(() => {
      late.abort();
      request.destroy();
    }, this.#answerMs);
    try {
      send(request);
      return { request, first: await firstAnswer(request, what) };
    } catch (error) {
      if (!late.signal.aborted) throw error;
      throw new VivError("timeout", `${what} did not begin to answer within ${Math.round(this.#answerMs / 1000)} seconds.`, {
        cause: error,
        remedy: `Look at what the program does: \`viv ps ${place.sandbox}\`, \`viv logs ${place.sandbox} COMMAND\`.`,
      });
    } finally {
      clearTimeout(timer);
    }
  }

  async #dial(place: PreviewPlace): Promise<Duplex> {
    try {
      return await (place.door === LAB_DOOR
        ? this.#streams.notebook(place.sandbox)
        : this.#streams.dial(place.sandbox, Number(place.door)));
    } catch (error) {
      throw refusal(VivError.from(error), place);
    }
  }
}

function commandFor({ sandbox, door }: PreviewPlace): string {
  return door === LAB_DOOR ? `viv notebook ${sandbox}` : `viv port ${sandbox} ${door} --open`;
}

/** Why there is no connection, for a person. */
function refusal(known: VivError, { sandbox, door }: PreviewPlace): PreviewTrouble {
  switch (known.code) {
    case "port_unreachable":
      return new PreviewTrouble(
        known,
        door === LAB_DOOR
          ? { title: "JupyterLab does not run in this sandbox.", remedy: `\`viv notebook ${sandbox}\` starts it.` }
          : {
              title: `Nothing listens on port ${door} in this sandbox yet.`,
              remedy: `Start the program that does, for example with \`viv exec ${sandbox} -- npm run dev\`.`,
              again: true,
            },
      );
    case "not_running":
      return new PreviewTrouble(known, { again: true });
    case "not_found":
      return new PreviewTrouble(known, {
        title: "This sandbox was removed.",
        remedy: "Its previews are gone with it; `viv ls` shows those that are there.",
      });
    default:
      return new PreviewTrouble(known);
  }
}

function visitOf(incoming: IncomingMessage, ways: PreviewWays, switches: boolean): Visit {
  const place = previewPlace(ways.host, ways.site);
  const hosts = incoming.rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === "host");
  if (place === undefined || hosts.length !== 1 || incoming.url?.startsWith("/") !== true)
    throw new VivError("forbidden_origin", "The request does not name the preview's address as its Host.");
  const origin = previewOrigin(place, ways.site);
  const inside = ways.site.scheme === "http" ? origin : `http://${place.door}-${place.sandbox}.localhost`;
  return { ...ways, place, origin, inside, incoming, switches };
}

/** A page for a person, JSON for a script. */
function tell(
  { headers }: IncomingMessage,
  outgoing: ServerResponse,
  { known, trouble }: PreviewTrouble,
  dashboards: readonly string[],
): void {
  const forPerson =
    headers["sec-fetch-mode"] === "navigate" || (headers["sec-fetch-mode"] === undefined && headers.accept?.includes("text/html") === true);
  const body = forPerson ? troublePage(trouble) : JSON.stringify(known.toBody());
  outgoing.writeHead(known.status, {
    ...pageHeaders(dashboards),
    [TROUBLE_HEADER]: "1",
    ...(forPerson ? {} : { "content-type": "application/json" }),
    "content-length": Buffer.byteLength(body),
    connection: "close",
  });
  outgoing.end(body);
}
