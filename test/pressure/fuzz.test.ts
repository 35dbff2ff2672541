import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { memoryFolder } from "../support/folders.ts";
import { sanitizedProgram } from "../support/native-programs.ts";
import { needs } from "../support/skip.ts";
import { rounds } from "../support/soak.ts";

const seconds = rounds(3, 120);

interface Fuzzer {
  readonly name: string;
  /** What it is made of, beside its own file in native/tests. */
  readonly files: string;
  readonly defines?: string;
  /** How often it tries at least. */
  readonly least: number;
}

/** By what each of them shows. Its report says how often it came to what lies behind a good beginning. */
const FUZZERS: Readonly<Record<string, Fuzzer>> = {
  "the frame decoder and the request handling stand broken requests": {
    name: "fuzz",
    files: "shared/frames.c init/channel/*.c",
    defines: "-DFUZZ_MAIN",
    least: 10_000,
  },
  "the channel of the mover stands broken messages": {
    name: "fuzz_mover",
    files: "mover/channel.c mover/request.c",
    defines: "-Dexit=fuzz_exit",
    least: 10_000,
  },
  "the mover brings what a server let through and nothing else, whatever programs, hosts and that server do": {
    name: "fuzz_exchange",
    files: "mover/exchange.c mover/answer.c mover/connections.c mover/flow.c mover/bytes.c mover/channel.c mover/request.c mover/tunnel.c",
    defines: "-Dconnect=fuzz_connect -Ddup=fuzz_dup -Dsend=fuzz_send",
    least: 5,
  },
  "the front stands broken answers of a server": {
    name: "fuzz_front",
    files: "front/session.c front/output.c front/stream.c shared/frames.c",
    least: 10_000,
  },
  "the front shows the output of process 1 to the byte, in whatever pieces it comes": {
    name: "fuzz_reader",
    files: "front/reader.c front/output.c front/stream.c shared/frames.c",
    least: 1_000,
  },
  "the front moves a file as it is, and uses no descriptor that is not of one": {
    name: "fuzz_carry",
    files: "front/carry.c front/handed.c front/bytes.c shared/frames.c",
    defines: `-Dexit=fuzz_exit -DVIV_VERSION='"0"'`,
    least: 1_000,
  },
  "the helper answers every request once, whatever its children say and when they end": {
    name: "fuzz_jobs",
    files: "host/jobs.c shared/answer.c shared/frames.c",
    defines: "-Dsocketpair=fuzz_socketpair -Dfork=fuzz_fork -Dwaitid=fuzz_waitid -Dwaitpid=fuzz_waitpid",
    least: 100,
  },
  "a launcher stands broken requests and disks": {
    name: "fuzz_launch",
    files: "launch/request.c shared/frames.c",
    least: 1_000,
  },
  "a log that waits in memory has every byte at its place, and the newest always": {
    name: "fuzz_stage",
    files: "init/commands/stage.c init/commands/log.c shared/frames.c",
    least: 50,
  },
  "what a file system says of its changes is not trusted to be well-formed": {
    name: "fuzz_touched",
    files: "trees/diff/touched.c",
    defines: "-Dioctl=fuzz_ioctl",
    least: 1_000,
  },
};

describe("native code with the sanitizers", needs("linux", "compiler"), () => {
  test.for(Object.entries(FUZZERS))("%s", { timeout: (seconds + 60) * 1000 }, ([, { name, files, defines, least }]) => {
    const program = sanitizedProgram(name.replace("_", "-"), `tests/${name}.c ${files}`, defines);
    const seed = Date.now() % 1_000_000;
    const folder = mkdtempSync(join(memoryFolder(), "viv-fuzz-"));
    const report = execFileSync(program, [String(seconds), String(seed), folder], { encoding: "utf8" });
    rmSync(folder, { recursive: true });
    const [, runs, acts] = /runs=(\d+) acts=(\d+)/.exec(report) ?? [];
    expect(Number(runs), `seed ${seed}`).toBeGreaterThan(least);
    expect(Number(acts), "some of what was invented is good").toBeGreaterThan(least / 100);
  });
});
