/** What people and agents use inside a sandbox beside commands: code piece by piece, and the desktop. */
import { missing } from "../test/support/skip.ts";
import { round, series, timed } from "./measure.ts";
import type { Absent, Group, Measured } from "./rows.ts";
import { BenchServer } from "./server.ts";

const EXECUTIONS = 50;
const SCREENSHOTS = 30;
const DESKTOPS = 5;
const SIZE = { width: 1280, height: 800 };

export const insideGroup: Group = {
  keys: ["execute_ms", "screenshot_ms", "desktop_s"],
  async measure({ quick, wanted, progress }) {
    return BenchServer.with(async (server) => {
      const results: Partial<Record<"execute_ms" | "screenshot_ms" | "desktop_s", Measured | Absent>> = {};
      const times = (count: number): number => (quick ? Math.ceil(count / 5) : count);
      if (wanted.has("execute_ms")) {
        progress("execute_ms: code in a warm context");
        results.execute_ms = await orAbsent(missing("jupyter"), () => executions(server, times(EXECUTIONS)));
      }
      const lacking = missing("desktop");
      if (wanted.has("desktop_s")) {
        progress("desktop_s: desktops until the first picture");
        results.desktop_s = await orAbsent(lacking, () => desktops(server, times(DESKTOPS)));
      }
      if (wanted.has("screenshot_ms")) {
        progress("screenshot_ms: pictures of a desktop");
        results.screenshot_ms = await orAbsent(lacking, () => screenshots(server, times(SCREENSHOTS)));
      }
      return results;
    });
  },
};

async function orAbsent(reason: string | undefined, measure: () => Promise<Measured>): Promise<Measured | Absent> {
  return reason === undefined ? measure() : { reason };
}

/** The first one starts Jupyter and the kernel. */
async function executions(server: BenchServer, count: number): Promise<Measured> {
  const { id } = await server.create();
  const run = (): Promise<unknown> => server.call("executeCode", { sandbox: id, context: "main", code: "1 + 1" });
  const first = await timed(run);
  const samples: number[] = [];
  for (let index = 0; index < count; index += 1) samples.push(await timed(run));
  await server.remove(id);
  const all = series(samples);
  return { figure: all.median, raw: { execute: all }, more: { first_ms: round(first) } };
}

async function screenshots(server: BenchServer, count: number): Promise<Measured> {
  const { id } = await server.create();
  await server.call("openDesktop", { sandbox: id, ...SIZE });
  await server.screenshot(id);
  const samples: number[] = [];
  for (let index = 0; index < count; index += 1) samples.push(await timed(() => server.screenshot(id)));
  await server.remove(id);
  const all = series(samples);
  return { figure: all.median, raw: { screenshot: all } };
}

async function desktops(server: BenchServer, count: number): Promise<Measured> {
  const samples: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const { id } = await server.create();
    const ms = await timed(async () => {
      await server.call("openDesktop", { sandbox: id, ...SIZE });
      await server.screenshot(id);
    });
    samples.push(ms / 1000);
    await server.remove(id);
  }
  const all = series(samples, "s");
  return { figure: all.median, raw: { desktop: all } };
}
