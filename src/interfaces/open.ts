/** Opens the ways to the server: the gateway for sandboxes, the socket and the port for people and programs. */
import { readVersion } from "../base/config/machine.ts";
import { EventFeed } from "../base/events/events.ts";
import type { Closers } from "../base/host/closers.ts";
import { errorText } from "../base/host/log.ts";
import type { State } from "../base/open.ts";
import type { Rules } from "../rules/open.ts";
import type { SandboxFloor } from "../sandbox/open.ts";
import type { Work } from "../work/open.ts";
import { listen, type HttpListener, type ListenOptions } from "./api/listen.ts";
import type { Gateway } from "./gateway/gateway.ts";
import { GatewayRoutes } from "./gateway/routes.ts";
import { createEngine } from "./operations/engine.ts";
import { ServerView } from "./operations/server-status.ts";

/** First calls are answered before the server loads what it may need later. */
const PRELOAD_MS = 2_000;

export interface InterfaceOptions {
  readonly state: State;
  readonly rules: Rules;
  readonly floor: SandboxFloor;
  readonly work: Work;
  readonly gateway: Gateway;
  /** Also on this port of 127.0.0.1, with a token. */
  readonly tcp: ListenOptions["tcp"];
  /** Begins the end of the server. */
  readonly shutdown: () => void;
}

export async function openInterfaces(options: InterfaceOptions, closers: Closers): Promise<HttpListener> {
  const { state, rules, floor, work, gateway, tcp, shutdown } = options;
  const { log, paths, store } = state;
  const events = new EventFeed(store);
  closers.add(() => events.close());
  const routes = new GatewayRoutes({ ...floor, ...rules });
  closers.add(() => routes.close());
  await routes.resume();
  gateway.serve(routes);
  let listening: HttpListener | undefined;
  const view = new ServerView(state, floor.parts.backends, () => listening?.port ?? null);
  const engine = createEngine({ ...floor, ...rules, ...work, events, view, shutdown, temporary: state.temporary });
  listening = await listen(engine, {
    version: readVersion(),
    socketPath: paths.socket,
    ...(tcp === undefined ? {} : { tcp }),
    onError: (error) => log.warn("defect", { error: errorText(error), stack: error instanceof Error ? error.stack : undefined }),
  });
  closers.add(() => listening.close());
  // Where that fails, the first use tries again and tells of it.
  const preload = setTimeout(() => void rules.models.interceptor.preload().catch(() => undefined), PRELOAD_MS).unref();
  closers.add(() => clearTimeout(preload));
  return listening;
}
