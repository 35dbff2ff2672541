/** The command line as a user types it: its start, a command in a sandbox, much output, and copies. */
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { makeBundle, overlayed } from "./create.ts";
import { compare, pairCount, round } from "./measure.ts";
import { find } from "./peers.ts";
import { publish } from "./published.ts";
import type { Absent, Group, Measured, Settings } from "./rows.ts";
import { BenchServer } from "./server.ts";
import { Spawner } from "./spawner.ts";

const PAIRS = 100;
const TRUE = "/bin/true";
const GIB = 1024 ** 3;

interface Bench {
  readonly server: BenchServer;
  readonly viv: string;
  readonly spawner: Spawner;
  readonly sandbox: string;
}

export const commandLineGroup: Group = {
  keys: ["cli_start", "exec_cli_vs_spawn", "out_mb_s", "cp_ratio"],
  async measure(settings) {
    return BenchServer.with(async (server) => {
      const viv = await publish(join(server.place, "package"));
      const spawner = new Spawner();
      const outcomes: Record<string, Measured | Absent> = {};
      try {
        const { id: sandbox } = await server.create();
        for (const [key, measure] of [
          ["cli_start", start],
          ["exec_cli_vs_spawn", typedExec],
          ["out_mb_s", muchOutput],
          ["cp_ratio", copies],
        ] as const) {
          if (!settings.wanted.has(key)) continue;
          settings.progress(key);
          outcomes[key] = await measure({ server, viv, spawner, sandbox }, settings);
        }
      } finally {
        await spawner.close();
      }
      return outcomes;
    });
  },
};

async function start({ viv, spawner }: Bench, { quick }: Settings): Promise<Measured> {
  return compare({
    pairs: pairCount(quick, PAIRS),
    sides: [
      ["viv version", () => spawner.run([viv, "version"])],
      ["node -e 0", () => spawner.run([process.execPath, "-e", "0"])],
    ],
  });
}

/** Against what enters the namespaces of the same sandbox from outside; beside it `runc exec` in a container of its own. */
async function typedExec(bench: Bench, { quick }: Settings): Promise<Measured | Absent> {
  const { server, viv, spawner, sandbox } = bench;
  const nsenter = find("nsenter");
  if (nsenter === undefined || process.getuid?.() !== 0) return { reason: "nsenter is not there, or this is not root" };
  const inside = Number(await processOne(server, sandbox));
  const enter = [nsenter, "--target", String(inside), "--mount", "--uts", "--ipc", "--net", "--pid", "--user", TRUE];
  const typed = (): Promise<number> => spawner.run([viv, "exec", sandbox, "--", TRUE], { env: server.env, cwd: server.project });
  const measured = await compare({
    pairs: pairCount(quick, PAIRS),
    sides: [
      ["viv exec", typed],
      ["nsenter", () => spawner.run(enter)],
    ],
  });
  const container = await Container.start(server);
  if (container === undefined) return measured;
  try {
    const other = await compare({
      pairs: pairCount(quick),
      sides: [
        ["viv exec", typed],
        ["runc exec", () => container.exec(TRUE)],
      ],
    });
    const { "runc exec": runc } = other.raw;
    return {
      ...measured,
      raw: { ...measured.raw, ...(runc === undefined ? {} : { "runc exec": runc }) },
      more: { vs_runc_exec: other.figure },
    };
  } finally {
    await container.remove();
  }
}

/** Process 1 of a sandbox, as this machine numbers it: the parent of what runs in it. */
async function processOne(server: BenchServer, sandbox: string): Promise<string> {
  const mark = `${30_000 + (process.pid % 10_000)}`;
  await server.call("runCommand", { sandbox, command: ["/bin/sleep", mark], background: true });
  const [pid = ""] = execFileSync("pgrep", ["-xf", `/bin/sleep ${mark}`], { encoding: "utf8" }).split("\n");
  const parent = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (parent === undefined) throw new Error("the sandbox's process 1 was not found");
  return parent;
}

/** A container that waits, on an overlay of the machine's root as in create_vs_runc. */
class Container {
  readonly #spawner: Spawner;
  readonly #runc: readonly string[];
  readonly #name = `viv-bench-exec-${process.pid}`;

  private constructor(spawner: Spawner, runc: readonly string[]) {
    this.#spawner = spawner;
    this.#runc = runc;
  }

  /** Undefined where there is no runc. */
  static async start(server: BenchServer): Promise<Container | undefined> {
    const runc = find("runc");
    if (runc === undefined) return undefined;
    const place = join(server.place, "runc-exec");
    const bundle = makeBundle(runc, place, ["/bin/sleep", "100000"]);
    const container = new Container(new Spawner(overlayed(place, bundle)), [runc, "--root", join(place, "state")]);
    await container.#run("run", "--detach", "--bundle", bundle, container.#name);
    return container;
  }

  #run(...words: readonly string[]): Promise<number> {
    return this.#spawner.run([...this.#runc, ...words]);
  }

  exec(...command: readonly string[]): Promise<number> {
    return this.#run("exec", this.#name, ...command);
  }

  async remove(): Promise<void> {
    await this.#run("delete", "--force", this.#name);
    await this.#spawner.close();
  }
}

/** A gibibyte that a command inside prints, against the same command in a pipe. */
async function muchOutput({ server, viv, spawner, sandbox }: Bench, { quick }: Settings): Promise<Measured> {
  const print = `head -c ${GIB} /dev/zero`;
  const typed = `"$0" exec "$1" -- ${print} | cat >/dev/null`;
  const measured = await compare({
    pairs: quick ? 1 : 5,
    warmUp: 1,
    sides: [
      ["viv exec", () => spawner.run(["/bin/sh", "-c", typed, viv, sandbox], { env: server.env, cwd: server.project })],
      ["pipe", () => spawner.run(["/bin/sh", "-c", `${print} | cat >/dev/null`])],
    ],
  });
  const perSecond = (name: string): number => round(GIB / 1e6 / ((measured.raw[name]?.median ?? Number.NaN) / 1000));
  return { ...measured, figure: perSecond("viv exec"), more: { pipe_mb_s: perSecond("pipe"), times_as_long: measured.figure } };
}

/** A gibibyte into a sandbox and out again, against cp on the same disk; the figure is the worse of the two. */
async function copies({ server, viv, spawner, sandbox }: Bench, { quick }: Settings): Promise<Measured> {
  const large = join(server.place, "large");
  execFileSync("/bin/sh", ["-c", `head -c ${GIB} /dev/urandom >"$0"`, large]);
  const away = (path: string): void => rmSync(path, { force: true });
  const typed = (from: string, to: string): Promise<number> => spawner.run([viv, "cp", from, to], { env: server.env, cwd: server.place });
  const plain = (target: string): Promise<number> => spawner.run(["/bin/cp", large, target], { cwd: server.place });
  const own = join(server.place, "out");
  const side = (work: () => Promise<number>) => async (): Promise<number> => {
    away(own);
    return work();
  };
  const pairs = quick ? 1 : 5;
  const into = await compare({
    pairs,
    warmUp: 1,
    sides: [
      ["viv cp in", side(() => typed(large, `${sandbox}:/tmp/large`))],
      ["cp", side(() => plain(own))],
    ],
  });
  const out = await compare({
    pairs,
    warmUp: 1,
    sides: [
      ["viv cp out", side(() => typed(`${sandbox}:/tmp/large`, own))],
      ["cp again", side(() => plain(own))],
    ],
  });
  return { figure: Math.max(into.figure, out.figure), raw: { ...into.raw, ...out.raw }, more: { in: into.figure, out: out.figure } };
}
