/** The parser against real shells: what bash and dash run, the policy has seen. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decide, effectivePolicy } from "../../src/base/policy/policy.ts";

const SHELLS = ["/bin/bash", "/bin/dash"];
const ROUNDS = 5_000;
let folder = "";
let log = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "viv-policy-shells-"));
  log = join(folder, "log");
  mkdirSync(join(folder, "bin"));
  mkdirSync(join(folder, "cwd"));
  // The programs only say that they ran: nothing else can be found from here.
  for (const name of ["good", "bad"]) {
    writeFileSync(join(folder, "bin", name), `#!/bin/sh\necho ${name} >>'${log}'\n`);
    chmodSync(join(folder, "bin", name), 0o755);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function ran(shell: string, script: string, path = ""): Set<string> {
  writeFileSync(log, "");
  spawnSync(shell, ["-c", script], {
    cwd: join(folder, "cwd"),
    env: { PATH: `${join(folder, "bin")}${path}`, HOME: join(folder, "cwd") },
    input: "bad\n",
    timeout: 2_000,
    killSignal: "SIGKILL",
  });
  return new Set(readFileSync(log, "utf8").split("\n").filter(Boolean));
}

const policy = effectivePolicy({ config: { policy: { bash: { "good *": "allow", "bad *": "deny", "*": "allow" } } } });
const seen = (command: string): string => decide(policy, { kind: "command", command }).verdict;

function randomness(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Loops without end are left out; every file name is `f`, in a folder of its own. */
const PIECES = [
  "good",
  "good ",
  "bad",
  "bad ",
  " ",
  "\n",
  ";",
  "&&",
  "||",
  "|",
  "(",
  ")",
  "((",
  "))",
  "{ ",
  "; }",
  "'",
  '"',
  "`",
  "$(",
  "$((",
  "${x:-",
  "}",
  "$'",
  "\\",
  "\\\n",
  "\\'",
  '\\"',
  "\\`",
  "<<A\n",
  "\nA\n",
  "<<'A'\n",
  "<<-A\n",
  "A",
  "A\n",
  "<<<",
  "<(",
  ">f ",
  "2>&1 ",
  "&>f ",
  "#",
  " # ",
  "[[ ",
  " ]]",
  "$[",
  "]",
  "case x in x) ",
  ";; ",
  "esac",
  "if ",
  "then ",
  "fi",
  "for i in 1; do ",
  "done",
  "x=1 ",
  "x=",
  "f() ",
  "eval ",
  "command ",
  "exec ",
  "!",
  " ! ",
  "1+1",
  "<<",
  "EO",
  "$x",
  "*",
  "=",
  ",",
  "a",
  "-",
  "\t",
  "\r",
  "coproc ",
  "time ",
  "function f ",
  "trap ",
  " EXIT",
  ". ",
  "$",
  '"$',
  "$\\\n(",
  "x\\\n=1 ",
  "x+",
  "x[",
  'x["]"]=',
  "x['",
  "]=",
  "x=()",
];

/** Each hides a program behind joined lines, or in a subscript or a list; what a shell makes of it, the policy has to see. */
const HIDDEN = [
  'good "$\\\n(bad)"',
  "good $\\\n(bad)",
  'good "`ba\\\nd`"',
  "good `# x\\\nbad`",
  'good "${x\\\n:-$\\\n(bad)}"',
  'good "it\'s $\\\n(bad)"',
  "x\\\n=1 bad",
  "x+\\\n=1 bad",
  "x\\\ny=1 bad",
  "x=1 \\\ny\\\n=2 \\\nbad",
  "2\\\n>f bad",
  "# x \\\nbad",
  "good # x \\\nbad",
  "good 'x \\\n'; bad",
  "good '\\\n' \"$\\\n(bad)\"",
  "good $'x \\\n'; bad",
  "good x\\\\\nbad",
  "good <<A\n$\\\n(bad)\nA\n",
  "good <<'A'\nx\\\nA\nbad",
  "good <\\\n<A\nx\nA\nbad",
  "good <<A\\\nB\nx\nAB\nbad",
  "good &\\\n& bad",
  "good |\\\n| bad; bad",
  "case x in x) good ;\\\n; esac; bad",
  "good $((1 + 1)\\\n); bad",
  "good $(( 1 + $\\\n(bad) ))",
  "i\\\nf good; then bad; f\\\ni",
  "good <\\\n(bad)",
  "x['b]='; bad #'",
  'x["]"]=1 bad',
  "x[\\]]=1 bad",
  'x["1"]\\\n=1 bad',
  `x[1${" + 1".repeat(100)}]=1 bad`,
  "x=()bad",
  "x=(1 2)good bad",
];

describe.each(SHELLS)("%s", (shell) => {
  test("AP-15: runs nothing that was denied while the verdict was allow", () => {
    const random = randomness(shell.length * 31);
    const missed: string[] = [];
    let harmless = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const length = 3 + Math.floor(random() * 14);
      const script = Array.from({ length }, () => PIECES[Math.floor(random() * PIECES.length)] ?? "").join("");
      if (!script.includes("bad") || seen(script) === "deny") continue;
      // Only where the policy did not see it is there something to find out.
      if (seen(script) !== "allow") continue;
      harmless += 1;
      if (ran(shell, script).has("bad")) missed.push(script);
    }
    expect(missed).toEqual([]);
    expect(harmless).toBeGreaterThan(5);
  }, 60_000);

  test("AP-15: runs nothing that joined lines, subscripts and lists hide", () => {
    const allowed = HIDDEN.filter((script) => seen(script) === "allow");
    expect(allowed.filter((script) => ran(shell, script).has("bad"))).toEqual([]);
    expect(HIDDEN.filter((script) => ran(shell, script).has("bad")).length).toBeGreaterThan(HIDDEN.length / 2);
  });

  test("AP-15: as a control, the same programs do run without the policy", () => {
    expect([...ran(shell, "good; bad")].toSorted()).toEqual(["bad", "good"]);
    expect(ran(shell, "good $(bad)").has("bad")).toBe(true);
    expect(ran(shell, "good <<A\n`bad`\nA\n").has("bad")).toBe(true);
  });
});

const WRAPPERS =
  "env nice nohup timeout /usr/bin/time time command builtin exec setsid stdbuf ionice chrt taskset xargs find sh bash eval flock watch script trap".split(
    " ",
  );
const ARGUMENTS = (
  "good bad bad -- - -c -n 1 5 -k -s -S -u -i -0 -o -e -oL --signal KILL -x -a f -p -P -I {} -exec \\; + -execdir -name . 'bad' 'good;bad' A=1 -l -lc -v -w -E " +
  "0x1 -i0 --foreground --preserve-status -b -t --adjustment EXIT $x -C --chdir=. --unset -print -N -L1 -n1 -r -d -f -q 2>f <f <<<bad | && -ec -O extglob -iS --split-string=bad"
).split(" ");

describe("programs that run others", () => {
  test("AP-15: run nothing that was denied while the verdict was allow", () => {
    const random = randomness(11);
    const of = (words: readonly string[]): string => words[Math.floor(random() * words.length)] ?? "";
    const missed: string[] = [];
    let harmless = 0;
    for (let round = 0; round < 1_500; round += 1) {
      const length = 1 + Math.floor(random() * 7);
      const script = [of(WRAPPERS), ...Array.from({ length }, () => of(random() < 0.15 ? WRAPPERS : ARGUMENTS))].join(" ");
      if (!script.includes("bad") || seen(script) !== "allow") continue;
      harmless += 1;
      if (ran("/bin/bash", script, ":/usr/bin:/bin").has("bad")) missed.push(script);
    }
    expect(missed).toEqual([]);
    expect(harmless).toBeGreaterThan(20);
  }, 120_000);

  test("AP-15: as a control, they do run it without the policy", () => {
    for (const line of ["env bad", "xargs", "find . -maxdepth 0 -exec bad \\;", "timeout 5 bad", "nice -n 1 bad"])
      expect([line, ran("/bin/bash", line === "xargs" ? "xargs env" : line, ":/usr/bin:/bin").has("bad")]).toEqual([line, true]);
  });
});
