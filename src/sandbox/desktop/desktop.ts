/**
 * The face of this folder: desktops of sandboxes. A desktop is a screen (Xvnc) and a window manager, which run inside as services do.
 * Its command in the store says that it is there; everything here can be made anew by the next server.
 */
import { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "../../base/schema/command.ts";
import {
  DESKTOP_DISPLAY,
  DESKTOP_SERVICE,
  DESKTOP_SIZE,
  type Desktop,
  type DesktopAction,
  type DesktopHolder,
  type DesktopWindow,
} from "../../base/schema/desktop.ts";
import { errorText } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Commands } from "../commands/commands.ts";
import type { Parts } from "../shared/parts.ts";
import { requireLive } from "../shared/state.ts";
import { Hands } from "./actions.ts";
import { Control } from "./control.ts";
import { encodePng } from "./png.ts";
import { browser, missingPrograms, NEEDED, screen, SCREEN_SOCKET, WINDOW_MANAGER, WINDOWS_SOCKET } from "./programs.ts";
import { Rfb } from "./rfb.ts";
import { ViewerFilter } from "./viewer-filter.ts";
import { hasWindowManager, listWindows } from "./windows.ts";
import { X11 } from "./x11.ts";

const RETRY_MS = 10;

interface Size {
  readonly width?: number | undefined;
  readonly height?: number | undefined;
}

/** What this server holds of a desktop, by the command that is its screen. */
interface Held {
  readonly control: Control;
  rfb: Promise<Rfb> | undefined;
  usedAt: number;
  /** Calls are carried out one after the other: two that type at once would mix their letters. */
  turn: Promise<unknown>;
}

export class Desktops {
  readonly #parts: Pick<Parts, "live" | "locks" | "log">;
  readonly #commands: Commands;
  readonly #held = new Map<string, Held>();

  constructor(parts: Pick<Parts, "live" | "locks" | "log">, commands: Commands) {
    this.#parts = parts;
    this.#commands = commands;
  }

  async open(row: SandboxRow, { browser: address, ...size }: Size & { readonly browser?: string | undefined }): Promise<Desktop> {
    requireLive(row);
    await this.#parts.locks.run(`desktop:${row.id}`, async () => {
      if ((await this.#find(row)) === undefined) await this.#start(row, size, address !== undefined);
      else if (size.width !== undefined || size.height !== undefined) await this.#resize(row, size);
    });
    if (address !== undefined) await this.#background(row, browser(address));
    return this.inspect(row);
  }

  async inspect(row: SandboxRow): Promise<Desktop> {
    const { held, rfb } = await this.#reach(row);
    // A screen that stands still has the size that it had.
    const size = row.state === "paused" ? rfb.size : await this.#apart(row, ({ size: now }) => Promise.resolve(now));
    const { isTaken, viewers } = held.control;
    return { sandbox: row.id, display: DESKTOP_DISPLAY, ...size, taken: isTaken, viewers };
  }

  async close(row: SandboxRow): Promise<void> {
    const command = await this.#require(row);
    this.#drop(command.id);
    await this.#commands.kill(row, command.id, "SIGTERM");
    const stream = await this.#commands.attach(row, command.id, false);
    stream.close();
    await stream.end;
  }

  async screenshot(row: SandboxRow): Promise<Buffer> {
    const { rfb } = await this.#reach(row);
    return encodePng(await rfb.picture(answer()));
  }

  /** For each wait, whether the screen changed in time. */
  async use(
    row: SandboxRow,
    actions: readonly DesktopAction[],
    signal: AbortSignal,
  ): Promise<{ width: number; height: number; changed: boolean[] }> {
    const { held, rfb } = await this.#reach(row);
    const work = held.turn.then(async () => {
      // Another viewer may have given it another size.
      await rfb.look(answer());
      const hands = new Hands(rfb);
      const changed: boolean[] = [];
      // What changed before this call is no change.
      if (actions.some((action) => action.do === "wait")) await rfb.picture(answer());
      for (const action of actions) {
        signal.throwIfAborted();
        if (held.control.isTaken) throw taken(row);
        const seen = await hands.act(action, signal);
        if (seen !== undefined) changed.push(seen);
      }
      return { ...rfb.size, changed };
    });
    held.turn = work.catch(() => undefined);
    return work;
  }

  async windows(row: SandboxRow): Promise<{ windows: DesktopWindow[]; cursor: { x: number; y: number } }> {
    await this.#require(row);
    const x11 = await X11.open(await this.#parts.live.require(row).walls.dial(WINDOWS_SOCKET), answer());
    try {
      return await listWindows(x11);
    } finally {
      x11.close();
    }
  }

  /** A connection for a viewer. One that takes over has keys and pointer until it leaves, or another one takes over; each is told. */
  async view(row: SandboxRow, takesOver: boolean, tell: (holder: DesktopHolder) => void): Promise<Duplex> {
    const { held } = await this.#reach(row);
    if (held.control.viewers >= LIMITS.maxDesktopViewers)
      throw new VivError("no_capacity", `${LIMITS.maxDesktopViewers} pages show this desktop already.`, { remedy: "Close one of them." });
    const live = this.#parts.live.require(row);
    const inside = await live.walls.dial(SCREEN_SOCKET);
    const viewer = Symbol("viewer");
    const filter = new ViewerFilter(() => held.control.isHeldBy(viewer));
    const leave = held.control.enter(viewer, takesOver, tell);
    const endUse = live.uses.begin("a page that shows its desktop");
    inside.once("close", () => (leave(), endUse()));
    filter.on("error", () => inside.destroy());
    filter.pipe(inside);
    const joined = Duplex.from({ writable: filter, readable: inside });
    joined.on("error", () => inside.destroy());
    joined.once("close", () => inside.destroy());
    return joined;
  }

  closeAll(): void {
    for (const command of this.#held.keys()) this.#drop(command);
  }

  async #find(row: SandboxRow): Promise<Command | undefined> {
    const running = await this.#commands.list(row, true);
    return running.find(({ service }) => service === DESKTOP_SERVICE);
  }

  async #require(row: SandboxRow): Promise<Command> {
    requireLive(row);
    const command = await this.#find(row);
    if (command !== undefined) return command;
    throw new VivError("not_found", `Sandbox ${row.name} has no desktop.`, { remedy: `Start one with \`viv desktop ${row.name}\`.` });
  }

  /** The screen, with a connection to it. */
  async #reach(row: SandboxRow): Promise<{ held: Held; rfb: Rfb }> {
    const { id } = await this.#require(row);
    const live = this.#parts.live.require(row);
    live.activeAt = performance.now();
    const held = this.#held.get(id) ?? { control: new Control(), rfb: undefined, usedAt: 0, turn: Promise.resolve() };
    this.#held.set(id, held);
    held.usedAt = performance.now();
    const known = await held.rfb?.catch(() => undefined);
    if (known?.isOpen !== true) {
      held.rfb = live.walls.dial(SCREEN_SOCKET).then((socket) => Rfb.open(socket, answer()));
      this.#letGoLater(id, held);
    }
    return { held, rfb: await (held.rfb as Promise<Rfb>) };
  }

  /** A connection that is not used any more is closed, and with the last viewer all is forgotten. */
  #letGoLater(id: string, held: Held): void {
    const timer = setTimeout(() => {
      const isUsed = performance.now() - held.usedAt < LIMITS.desktopIdleMs || held.control.viewers > 0;
      if (isUsed && this.#held.get(id) === held) return this.#letGoLater(id, held);
      this.#drop(id);
    }, LIMITS.desktopIdleMs);
    timer.unref();
  }

  #drop(id: string): void {
    void this.#held.get(id)?.rfb?.then(
      (rfb) => rfb.close(),
      () => undefined,
    );
    this.#held.delete(id);
  }

  /** Keys, pointer and size belong together: while a person has them, programs do not change the size. */
  async #resize(row: SandboxRow, size: Size): Promise<void> {
    const { held } = await this.#reach(row);
    await this.#apart(row, async (rfb) => {
      const { width = rfb.width, height = rfb.height } = size;
      if (width === rfb.width && height === rfb.height) return;
      if (held.control.isTaken) throw taken(row);
      await rfb.resize(width, height, answer());
    });
  }

  /** With a connection of its own, which knows the size of this moment, and waits for no call that takes its time. */
  async #apart<Result>(row: SandboxRow, work: (rfb: Rfb) => Promise<Result>): Promise<Result> {
    const rfb = await Rfb.open(await this.#parts.live.require(row).walls.dial(SCREEN_SOCKET), answer());
    try {
      return await work(rfb);
    } finally {
      rfb.close();
    }
  }

  async #start(row: SandboxRow, size: Size, hasBrowser: boolean): Promise<void> {
    const { width = DESKTOP_SIZE.width, height = DESKTOP_SIZE.height } = size;
    await this.#requirePrograms(row, hasBrowser ? [...NEEDED, "chromium"] : NEEDED);
    const stream = await this.#commands.start(row, { command: screen(width, height), service: DESKTOP_SERVICE });
    stream.close();
    const over = new AbortController();
    const failed = stream.end.then(async () => {
      const { stderr } = await this.#commands.result(row, stream.command.id);
      throw new VivError("desktop_failed", `The screen of sandbox ${row.name} did not start: ${stderr.trim().split("\n").at(-1) ?? ""}`);
    });
    try {
      await Promise.race([this.#listens(row, AbortSignal.any([over.signal, AbortSignal.timeout(LIMITS.desktopStartMs)])), failed]);
    } finally {
      over.abort();
      failed.catch(() => undefined);
    }
    await this.#background(row, WINDOW_MANAGER);
    await this.#managesWindows(row, AbortSignal.timeout(LIMITS.desktopStartMs));
  }

  async #managesWindows(row: SandboxRow, signal: AbortSignal): Promise<void> {
    const x11 = await X11.open(await this.#parts.live.require(row).walls.dial(WINDOWS_SOCKET), signal);
    try {
      while (!(await hasWindowManager(x11))) await delay(RETRY_MS, undefined, { signal });
    } catch (error) {
      // Without it, windows show and work all the same, at the place where they begin.
      this.#parts.log.info("no window manager", { sandbox: row.id, error: errorText(error) });
    } finally {
      x11.close();
    }
  }

  async #listens(row: SandboxRow, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        (await this.#parts.live.require(row).walls.dial(SCREEN_SOCKET)).destroy();
        return;
      } catch (error) {
        if (!(error instanceof VivError) || error.code !== "port_unreachable") throw error;
      }
      await delay(RETRY_MS, undefined, { signal });
    }
  }

  async #requirePrograms(row: SandboxRow, programs: readonly string[]): Promise<void> {
    const look = ["/bin/sh", "-c", 'for p; do command -v "$p" >/dev/null || echo "$p"; done', "sh", ...programs];
    const { stdout } = await this.#commands.run(row, { command: look }, undefined);
    const missing = programs.filter((program) => stdout.split("\n").includes(program));
    if (missing.length > 0) throw missingPrograms(missing);
  }

  /** A part of the desktop that ends with it. */
  async #background(row: SandboxRow, command: readonly string[]): Promise<void> {
    const stream = await this.#commands.start(row, {
      command: [...command],
      service: `${DESKTOP_SERVICE}-program`,
      env: { DISPLAY: DESKTOP_DISPLAY },
    });
    stream.close();
  }
}

function taken(row: SandboxRow): VivError {
  return new VivError("desktop_taken", `A person uses the desktop of sandbox ${row.name} now.`);
}

function answer(): AbortSignal {
  return AbortSignal.timeout(LIMITS.desktopAnswerMs);
}
