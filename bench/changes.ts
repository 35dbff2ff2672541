/** What changed in a large project, and bringing it into reality, against the tools that do that for folders. */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { compare, pairCount, round, timed } from "./measure.ts";
import { find, INSTALL } from "./peers.ts";
import { changedFiles, changingLine, makeProject } from "./projects.ts";
import type { Absent, Group, Key, Measured, Settings } from "./rows.ts";
import { BenchServer } from "./server.ts";
import { Spawner } from "./spawner.ts";

const VIV = fileURLToPath(new URL("../bin/viv", import.meta.url));
const FILES = 50_000;
const CHANGED = 5_000;
const CHANGE = changingLine(FILES, CHANGED);
/** git says by it that there are differences. */
const DIFFERENT = 1;

interface Scene {
  readonly server: BenchServer;
  readonly spawner: Spawner;
  readonly project: string;
  /** Copies of the project without its repository: as it is, and with the change. */
  readonly before: string;
  readonly after: string;
}

export const changesGroup: Group = {
  keys: ["diff_vs_git", "promote_vs_rsync"],
  async measure(settings) {
    return BenchServer.with(async (server) => {
      const spawner = new Spawner();
      try {
        settings.progress(`a project of ${FILES} files and two copies`);
        const scene = { server, spawner, ...makeFolders(server.place) };
        const outcomes: Partial<Record<Key, Measured | Absent>> = {};
        for (const [key, measure] of [
          ["diff_vs_git", againstGit],
          ["promote_vs_rsync", againstRsync],
        ] as const) {
          if (!settings.wanted.has(key)) continue;
          settings.progress(key);
          outcomes[key] = await measure(scene, settings);
        }
        return outcomes;
      } finally {
        await spawner.close();
      }
    });
  },
};

function makeFolders(place: string): { project: string; before: string; after: string } {
  const [project, before, after] = ["project", "before", "after"].map((name) => join(place, name)) as [string, string, string];
  makeProject(project, FILES);
  for (const copy of [before, after]) {
    mkdirSync(copy);
    execFileSync("cp", ["-a", join(project, "src"), copy]);
  }
  change(after);
  return { project, before, after };
}

function change(folder: string): void {
  execFileSync("/bin/sh", ["-c", CHANGE], { cwd: folder });
}

/** Like with like, as a user runs it, the output thrown away: counts of lines, and the whole patch. The figure is the worse one. */
async function againstGit({ server, spawner, project, before, after }: Scene, { quick }: Settings): Promise<Measured> {
  const { id: sandbox } = await server.create(project);
  await server.sh(sandbox, CHANGE);
  const { entries } = await server.call("diffSandbox", { sandbox, stat: true });
  if (entries.length !== CHANGED) throw new Error(`${entries.length} of ${CHANGED} changes were found`);
  const git = ["git", "--no-pager", "diff", "--no-index"];
  const against = (form: "--stat" | "--patch"): Promise<Measured> =>
    compare({
      pairs: pairCount(quick),
      warmUp: 1,
      sides: [
        [`viv diff ${form}`, () => spawner.run([VIV, "diff", form, sandbox], { cwd: project, env: server.env })],
        [`git diff ${form}`, () => spawner.run([...git, form, before, after], { okCodes: [DIFFERENT] })],
      ],
    });
  const stat = await against("--stat");
  const patch = await against("--patch");
  await server.remove(sandbox);
  const figure = Math.max(stat.figure, patch.figure);
  return { figure, raw: { ...stat.raw, ...patch.raw }, more: { stat: stat.figure, patch: patch.figure } };
}

/** Both sides write the same files into a folder that has the others, too, and both are brought back outside the clock. */
async function againstRsync({ server, spawner, project, before, after }: Scene, { quick }: Settings): Promise<Measured | Absent> {
  const rsync = find("rsync");
  if (rsync === undefined) return { reason: `rsync is not installed; ${INSTALL}` };
  const [changed, original] = ["changed", "original"].map((name) => join(server.place, name)) as [string, string];
  for (const [from, to] of [
    [after, changed],
    [before, original],
  ] as const)
    execFileSync(rsync, ["-a", "--files-from=-", from, to], { input: changedFiles(FILES, CHANGED).join("\n") });
  const settle = (): Promise<number> => spawner.run(["sync", "-f", server.place]);
  const synced = async (): Promise<number> => {
    const ms = await spawner.run([rsync, "-a", `${changed}/`, `${before}/`]);
    await spawner.run([rsync, "-a", `${original}/`, `${before}/`]);
    await settle();
    return ms;
  };
  const measured = await compare({
    pairs: pairCount(quick),
    warmUp: 1,
    sides: [
      ["promote", () => promoted(server, project, settle)],
      ["rsync -a", synced],
    ],
  });
  return { ...measured, more: { per_second: round((CHANGED / (measured.raw["promote"]?.median ?? Number.NaN)) * 1000) } };
}

/** A clone of today, changed inside, promoted; the call makes its plan, too. */
async function promoted(server: BenchServer, project: string, settle: () => Promise<number>): Promise<number> {
  const { id: sandbox } = await server.create(project);
  await server.sh(sandbox, CHANGE);
  await settle();
  let id = "";
  const ms = await timed(async () => {
    const promotion = await server.call("promote", { sandbox });
    if (promotion.state !== "applied" || promotion.plan?.files !== CHANGED) throw new Error(`not promoted: ${promotion.reason ?? ""}`);
    id = promotion.id;
  });
  await server.call("undoPromotion", { promotion: id });
  await server.remove(sandbox);
  await settle();
  return ms;
}
