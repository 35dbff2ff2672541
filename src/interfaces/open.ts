/** Opens the ways to the server: the gateway for sandboxes, the socket and the port for people and programs. */
import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import type { ListenChoice } from "../base/config/listen-choice.ts";
import { findPages, readVersion } from "../base/config/machine.ts";
import { EventFeed } from "../base/events/events.ts";
import type { Closers } from "../base/host/closers.ts";
import { errorText } from "../base/host/log.ts";
import type { State } from "../base/open.ts";
import { VivError } from "../base/schema/errors.ts";
import { LIMITS } from "../base/schema/limits.ts";
import type { Rules } from "../rules/open.ts";
import type { SandboxFloor } from "../sandbox/open.ts";
import { RunsGateway } from "../work/agents/runs-gateway.ts";
import type { Work } from "../work/open.ts";
import { doorOf, loopbackDoor } from "./api/door.ts";
import { listen, type HttpListener, type OpenedDoor } from "./api/listen.ts";
import { Pages } from "./api/pages.ts";
import type { Gateway } from "./gateway/gateway.ts";
import { GatewayRoutes } from "./gateway/routes.ts";
import { DashboardDoor } from "./operations/dashboard.ts";
import { HttpTools } from "./mcp/http.ts";
import { createEngine } from "./operations/engine.ts";
import { MachineHistory } from "./operations/machine-history.ts";
import { ServerView } from "./operations/server-status.ts";

/** First calls are answered before the server loads what it may need later. */
const PRELOAD_MS = 2_000;

export interface InterfaceOptions {
  readonly state: State;
  readonly rules: Rules;
  readonly floor: SandboxFloor;
  readonly work: Work;
  readonly gateway: Gateway;
  /** Also by TCP, for callers that prove themselves. */
  readonly listen: ListenChoice | undefined;
  /** Begins the end of the server. */
  readonly shutdown: () => void;
}

/** For clients of the TCP port, as long as the server runs. */
function noteToken(file: string, token: string): void {
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
}

/** Pages that are open in a browser find the server again after it was started anew. */
async function reopen(openPort: (port: number) => Promise<OpenedDoor>, port: number | undefined, log: State["log"]): Promise<void> {
  if (port === undefined) return;
  try {
    await openPort(port);
  } catch (error) {
    log.warn("the port that open pages of the dashboard know can't be had; `viv open` opens another one", {
      port,
      error: errorText(error),
    });
  }
}

export async function openInterfaces(options: InterfaceOptions, closers: Closers): Promise<HttpListener> {
  const { state, rules, floor, work, gateway, shutdown } = options;
  const { log, paths, store } = state;
  const events = new EventFeed(store);
  closers.add(() => events.close());
  const routes = new GatewayRoutes({ ...floor, ...rules, runs: new RunsGateway(work.runs), reviews: work.reviews });
  closers.add(() => routes.close());
  await routes.resume();
  gateway.serve(routes);
  let listening: HttpListener | undefined;
  const view = new ServerView(state, floor.parts.backends, () => listening?.opened);
  const history = new MachineHistory(() => view.status(), {
    firstMs: PRELOAD_MS,
    everyMs: LIMITS.machineSampleMs,
    most: LIMITS.machineSamples,
    onFailed: (error) => log.warn("the use of the machine was not noted", { error: errorText(error) }),
  });
  closers.add(() => history.close());
  const token = randomBytes(32).toString("base64url");
  const openPort = async (port: number): Promise<OpenedDoor> => {
    if (listening === undefined) throw new VivError("busy", "The server is starting.");
    const opened = await listening.open({ door: loopbackDoor(port), token });
    noteToken(paths.token, token);
    return opened;
  };
  closers.add(() => rmSync(paths.token, { force: true }));
  const door = new DashboardDoor(rules.sessions, rules.approvals, openPort);
  const engine = createEngine({ ...floor, ...rules, ...work, events, view, history, door, shutdown, temporary: state.temporary });
  const chatTools = new HttpTools({
    socket: paths.socket,
    version: readVersion(),
    projects: state.user.mcp.projects,
    path: state.env["PATH"],
  });
  closers.add(() => chatTools.close());
  const version = readVersion();
  listening = await listen(engine, {
    version,
    socketPath: paths.socket,
    dashboard: { pages: new Pages(findPages()), sessions: rules.sessions, previews: rules.previews },
    ...(options.listen === undefined ? {} : { tcp: { door: await doorOf(options.listen, paths.home), token } }),
    chatTools: (request) => chatTools.answer(request),
    // Loaded when the first one comes.
    commandLines: async (socket, head, own, closing) => {
      const { serveFront } = await import("./front/command-lines.ts");
      serveFront(socket, head, { engine: own, version, socket: paths.socket, closing });
    },
    onError: (error) => log.warn("defect", { error: errorText(error), stack: error instanceof Error ? error.stack : undefined }),
  });
  closers.add(() => listening.close());
  if (options.listen !== undefined) noteToken(paths.token, token);
  else await reopen(openPort, rules.sessions.port, log);
  // Where that fails, the first use tries again and tells of it.
  const preload = setTimeout(() => void rules.models.interceptor.preload().catch(() => undefined), PRELOAD_MS).unref();
  closers.add(() => clearTimeout(preload));
  return listening;
}
