import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ERRORS, type ErrorBody } from "../../src/base/schema/errors.ts";
import { CHECKOUT, PROGRAM } from "../support/compiled.ts";
import { viv, vivEnvironment, type Answer, type VivOptions } from "../support/viv.ts";
import { eventually, TestServer } from "../support/server.ts";
import { Terminal } from "../support/terminal.ts";
import { needs } from "../support/skip.ts";

const md5 = (bytes: Uint8Array): string => createHash("md5").update(bytes).digest("hex");

/** What every failure looks like: one line that says what happened, one that says what to do. */
const failure = (code: number, message: RegExp): object => ({
  code,
  out: "",
  err: expect.stringMatching(new RegExp(`^viv: .*${message.source}.*\\n +[^\\n]+\\n$`)),
});

describe("the command line", needs("root"), () => {
  let server: TestServer;
  const run = (words: string[], options: VivOptions = {}): Answer => viv(server, words, { cwd: server.project, ...options });

  beforeAll(async () => {
    server = await TestServer.start({ files: { "hello.txt": "hello\n", "src/a.js": "1\n" } });
    await server.create({ name: "try" });
  });

  afterAll(async () => server.remove());

  test("CLI-1: create prints the name alone, or id, name and state as JSON; ls shows them", () => {
    const created = run(["create", "--json", "--name", "first", "--label", "of=test"]);
    expect(created).toMatchObject({ code: 0, err: "" });
    expect(JSON.parse(created.out)).toMatchObject({
      id: expect.stringMatching(/^sbx/),
      name: "first",
      state: "running",
      project: server.project,
      labels: { of: "test" },
    });
    const named = run(["create"]);
    expect(named.out).toMatch(/^[a-z]+-[a-z]+\n$/);
    const [head, ...rows] = run(["ls"]).out.trimEnd().split("\n");
    expect(head).toMatch(/^NAME +STATE +PROJECT +CREATED +STOPS$/);
    expect(rows).toHaveLength(3);
    expect(rows.find((row) => row.startsWith("first "))).toMatch(/^first +running +\/.* (now|ago) +in /);
    expect(run(["ls", "--quiet"]).out.split("\n").filter(Boolean)).toContain("first");
    expect(run(["rm", "first", named.out.trim()])).toMatchObject({ code: 0 });
    expect(JSON.parse(run(["ls", "--json"]).out).sandboxes).toHaveLength(1);
  });

  test("NET-1: create says which package registries sandboxes don't reach, and the command that opens each", () => {
    const settings = join(server.project, ".npmrc");
    const named = ["10.255.255.1:4873", "packages.example.com:8443", "packages.example.com", "169.254.169.254", "127.0.0.1:4873"];
    writeFileSync(
      settings,
      [...named.map((place) => `@${place}:registry=https://${place}/`), "# http://10.255.255.2:4873/", ""].join("\n"),
    );
    const told = (place: string, why: string): string =>
      `${settings} names ${place} as a package registry, which sandboxes don't reach, because ${why}: \`viv network allow-private ${place}\` opens it for this project.\n`;
    const port = told("packages.example.com:8443", "port 8443 is not open");
    const both = told("10.255.255.1:4873", "its address is private") + port;
    const ofProject = ({ err }: Answer): string => (err.match(/.*\n/g) ?? []).filter((line) => line.startsWith(server.project)).join("");
    const created = run(["create", "--name", "offered"]);
    expect(created).toMatchObject({ code: 0, out: "offered\n" });
    expect(ofProject(created)).toBe(both);
    const closed = run(["create", "--name", "closed", "--network", "off"]);
    expect(closed).toMatchObject({ code: 0 });
    expect(ofProject(closed)).toBe("");
    const opened = run(["network", "allow-private", "10.255.255.1:4873"], { env: { VIV_APPROVER_TOKEN: server.approver() } });
    expect(opened).toMatchObject({ code: 0 });
    const elsewhere = run(["create", "--name", "elsewhere", server.project], { cwd: "/" });
    expect(ofProject(elsewhere)).toBe(port.replace("allow-private ", `allow-private --project ${server.project} `));
    rmSync(settings);
    expect(run(["rm", "offered", "closed", "elsewhere"])).toMatchObject({ code: 0 });
  });

  test("CLI-1: exec passes every byte, the exit code and the folder through", () => {
    const bytes = randomBytes(3 * 1024 ** 2);
    expect(md5(run(["exec", "try", "--", "cat"], { input: bytes }).bytes)).toBe(md5(bytes));
    expect(run(["exec", "try", "--", "md5sum"], { input: bytes }).out).toBe(`${md5(bytes)}  -\n`);
    expect(run(["exec", "try", "sh", "-c", "echo out; echo err >&2; exit 3"])).toMatchObject({ code: 3, out: "out\n", err: "err\n" });
    expect(run(["exec", "try", "--", "pwd"], { cwd: join(server.project, "src") }).out).toBe(`${join(server.project, "src")}\n`);
    expect(run(["exec", "-w", "src", "try", "--", "pwd"]).out).toBe(`${join(server.project, "src")}\n`);
    expect(run(["exec", "-w", "..", "try", "--", "pwd"], { cwd: join(server.project, "src") }).out).toBe(`${server.project}\n`);
    expect(run(["exec", "-w", "src", "try", "--", "pwd"], { cwd: "/" }).out).toBe(`${join(server.project, "src")}\n`);
    expect(run(["exec", "-w", "/usr", "-e", "A=b c", "-u", "nobody", "try", "--", "sh", "-c", 'pwd; echo "$A"; id -un']).out).toBe(
      "/usr\nb c\nnobody\n",
    );
    expect(run(["exec", "try", "--", "sh", "-c", "kill -TERM $$"]).code).toBe(143);
    expect(run(["exec", "--timeout", "100ms", "try", "--", "sleep", "60"])).toMatchObject({
      code: 124,
      err: "viv: The command reached its time limit.\n",
    });
  });

  test("CLI-1: what can't be run ends with 127, 126 or 125 and says why", () => {
    expect(run(["exec", "try", "--", "no-such-program"])).toMatchObject(failure(127, /no-such-program/));
    expect(run(["exec", "try", "--", "/etc/passwd"])).toMatchObject(failure(126, /\/etc\/passwd can't be run/));
    expect(run(["exec", "-w", "/nonexistent", "try", "--", "true"])).toMatchObject(
      failure(125, /The working folder \/nonexistent can't be entered: No such file or directory/),
    );
    expect(run(["exec", "-u", "nosuchuser", "try", "--", "true"])).toMatchObject(
      failure(125, /There is no user nosuchuser in the sandbox/),
    );
    expect(run(["exec", "absent", "--", "true"])).toMatchObject(failure(125, /There is no sandbox absent/));
  });

  test("CLI-1: every mistake is told in one sentence, with what to do", () => {
    expect(run(["inspect", "absent"])).toMatchObject(failure(2, /There is no sandbox absent\./));
    expect(run(["inspect", "Not_A_Name"])).toMatchObject(failure(2, /not a sandbox id or name/));
    expect(run(["creat"])).toMatchObject(failure(2, /There is no command "creat"\. Did you mean `viv create`\?/));
    expect(run(["create", "--memry", "1g"])).toMatchObject(failure(2, /--memry/));
    expect(run(["create", "--memory", "lots"])).toMatchObject(failure(2, /--memory/));
    expect(run(["create", "--name", "try"])).toMatchObject(failure(3, /There is a sandbox called try already/));
    expect(run(["create", "--name", "No Spaces"])).toMatchObject(failure(2, /a name is 1 to 63 lower-case letters/));
    expect(run(["create", "--project", "/no/such/folder"])).toMatchObject(failure(2, /\/no\/such\/folder/));
    expect(run(["create"], { cwd: "/usr" })).toMatchObject(
      failure(2, /Neither \/usr nor a folder above it has a vivarium\.json or a \.git/),
    );
    expect(run(["logs", "try", "nonsense"])).toMatchObject(failure(2, /There is no command "nonsense"/));
    expect(run(["kill", "try", "cmd00000000000000000000000000"])).toMatchObject(failure(2, /has no command/));
    expect(run(["rollback", "try", "absent"])).toMatchObject(failure(2, /has no snapshot absent/));
    expect(run(["resume", "try"])).toMatchObject(failure(3, /is running, not paused/));
    expect(run(["files", "cat", "try", "absent.txt"])).toMatchObject(failure(2, /absent\.txt: No such file or directory\./));
    expect(run(["cp", "try:absent", "here"])).toMatchObject(failure(2, /absent/));
    expect(run(["extend", "try", "--by", "soon"])).toMatchObject(failure(2, /--by/));
  });

  test("CLI-1: advice is for what was typed", () => {
    expect(run(["snapshot", "try", "twice"])).toMatchObject({ code: 0 });
    const advice = (...words: string[]): string => run(words).err.split("\n")[1] ?? "";
    expect(advice("snapshot", "try", "twice")).toContain("`viv snapshots --remove twice try`");
    expect(run(["snapshots", "--remove", "twice", "try"])).toMatchObject({ code: 0 });
    expect(advice("exec", "--user", "nobody-here", "try", "--", "true")).toContain("/etc/passwd");
    expect(advice("network", "try", "--allow", "10.1.2.3")).toContain("`viv network allow-private 10.1.2.3:443`");
    expect(advice("network", "try", "--allow", "printer.local:9100")).toContain("`viv network allow-private printer.local:9100`");
    expect(run(["network", "try", "--allow", "packages.example.com:8443"]).out).toContain("allowed: packages.example.com:8443\n");
    expect(advice("resume", "try")).toContain("viv inspect");
    expect(advice("run", "-p", "8080:80", "--", "true")).toContain("`viv port SANDBOX 80 8080`");
    expect(advice("run", "debian:12", "bash")).toContain("no images");
  });

  test("CLI-1: what hands know from Docker works or says how it is done here", () => {
    expect(run(["run", "--rm", "-it", "-e", "A=b", "--no-tty", "--", "sh", "-c", 'echo "$A"'])).toMatchObject({ code: 0, out: "b\n" });
    expect(run(["create", "--name", "gone"])).toMatchObject({ code: 0 });
    expect(run(["rm", "-f", "gone"])).toMatchObject({ code: 0, out: "gone\n" });
    expect(run(["run", "--rm", "--keep", "--", "true"])).toMatchObject(failure(2, /--rm and --keep/));
  });

  test("CLI-1: with --json a failure is JSON, too, with the same exit code", () => {
    for (const [words, code] of [
      [["inspect", "absent"], "not_found"],
      [["create", "--memry"], "usage"],
      [["create", "--name", "try"], "name_taken"],
    ] as const) {
      const answer = run([...words, "--json"]);
      const { error } = JSON.parse(answer.out) as ErrorBody;
      expect(error).toMatchObject({ code, message: expect.stringMatching(/[.?]$/), remedy: expect.stringMatching(/\.$/) });
      expect(answer).toMatchObject({ code: ERRORS[code].exit, err: "" });
    }
  });

  test("CLI-1: cp carries files and folders both ways", () => {
    const here = join(server.place, "copies");
    mkdirSync(join(here, "in/deep"), { recursive: true });
    const bytes = randomBytes(100_000);
    writeFileSync(join(here, "in/deep/data.bin"), bytes);
    writeFileSync(join(here, "in/run.sh"), "#!/bin/sh\necho ran\n", { mode: 0o755 });
    expect(run(["cp", "in", "try:/tmp/copied"], { cwd: here })).toMatchObject({ code: 0, err: "" });
    expect(run(["exec", "try", "--", "/tmp/copied/run.sh"]).out).toBe("ran\n");
    run(["exec", "try", "--", "sh", "-c", "ln -s /etc/shadow /tmp/copied/link; ln -s run.sh /tmp/copied/near"]);
    const out = run(["cp", "try:/tmp/copied", "out"], { cwd: here });
    expect(out).toMatchObject({ code: 0, err: expect.stringContaining("left out link") });
    expect(md5(readFileSync(join(here, "out/deep/data.bin")))).toBe(md5(bytes));
    expect(existsSync(join(here, "out/link"))).toBe(false);
    expect(run(["cp", "hello.txt", "try:renamed.txt"])).toMatchObject({ code: 0 });
    expect(run(["cp", "try:renamed.txt", here])).toMatchObject({ code: 0 });
    expect(readFileSync(join(here, "renamed.txt"), "utf8")).toBe("hello\n");
    const device = join(here, "null");
    execFileSync("mknod", [device, "c", "1", "3"]);
    expect(run(["cp", "try:renamed.txt", device])).toMatchObject(failure(3, /is a device/));
    run(["exec", "try", "--", "cp", "renamed.txt", "null"]);
    expect(run(["cp", "try:null", here])).toMatchObject(failure(3, /is a device/));
    expect(statSync(device).isCharacterDevice()).toBe(true);
  });

  test("CLI-1: snapshot, change, diff, rollback and fork", () => {
    run(["create", "--name", "story"]);
    run(["exec", "story", "--", "sh", "-c", "echo one > state"]);
    expect(JSON.parse(run(["snapshot", "story", "one", "--json"]).out)).toMatchObject({ name: "one", current: true });
    run(["exec", "story", "--", "sh", "-c", "echo two > state; rm src/a.js; echo more >> hello.txt"]);
    expect(
      run(["diff", "story"])
        .out.split("\n")
        .filter(Boolean)
        .map((line) => line.trim().split(/\s+/).slice(0, 2).join(" "))
        .toSorted(),
    ).toEqual(["A state", "D src/a.js", "M hello.txt"]);
    expect(run(["fork", "story", "--name", "branch"])).toMatchObject({ code: 0, out: "branch\n" });
    expect(run(["rollback", "story", "one"])).toMatchObject({ code: 0 });
    expect(run(["exec", "story", "--", "cat", "state", "src/a.js"]).out).toBe("one\n1\n");
    expect(run(["exec", "branch", "--", "cat", "state"]).out).toBe("two\n");
    expect(run(["snapshots", "story"]).out).toContain("one");
    expect(run(["stop", "story"])).toMatchObject({ code: 0 });
    expect(run(["rm", "story", "branch"])).toMatchObject({ code: 0 });
  });

  test("F-20: a server that the machine killed is started again by the next command, and its sandboxes went on meanwhile", async () => {
    const id = run(["exec", "-d", "try", "--", "sleep", "1000"]).out.trim();
    await server.kill();
    try {
      expect(run(["exec", "try", "--", "cat", "hello.txt"])).toMatchObject({ code: 0, out: "hello\n" });
      expect(run(["ps", "try"]).out).toContain(id);
      expect(run(["kill", "try", id])).toMatchObject({ code: 0 });
    } finally {
      run(["down"]);
      await server.up();
    }
  });

  test("PROM-1: diff lists what a promotion leaves out apart, and not at all with --promotable", () => {
    run(["create", "--name", "apart"]);
    const line =
      "echo node_modules/ > .gitignore; mkdir -p node_modules/x out; seq 20 | xargs -I% touch node_modules/x/%; echo out >> .gitignore; touch out/o; echo 1 > new.js";
    run(["exec", "apart", "--", "sh", "-c", line]);
    const shown = run(["diff", "apart"]).out.split("\n");
    const heading = shown.findIndex((each) => each.startsWith("Left out by a promotion"));
    expect(shown.slice(0, heading)).toEqual(["A  .gitignore", "A  new.js", ""]);
    expect(shown.slice(heading + 1)).toEqual(["   node_modules/: 20 paths", "A  out/o", ""]);
    expect(run(["diff", "apart", "--promotable"]).out).toBe("A  .gitignore\nA  new.js\n");
    expect(run(["diff", "apart", "--promotable", "--names"]).out).toBe(".gitignore\nnew.js\n");
    expect(run(["diff", "apart", "--promotable", "--stat"]).out).toContain("2 paths changed, 3 lines added");
    expect(run(["diff", "apart", "--promotable", "--patch"]).out).not.toContain("out/o");
    run(["rm", "apart"]);
  });

  test("BOX-8: the clone of viv run goes when viv is killed, also together with the server", async () => {
    const runs = async (name: string): Promise<ChildProcess> => {
      const child = spawn(PROGRAM, ["run", "--name", name, "--", "sh", "-c", "exec sleep 1000"], {
        cwd: server.project,
        env: vivEnvironment(server),
        stdio: "ignore",
      });
      await eventually(
        () => run(["ps", name]).out,
        (out) => out.includes("sleep 1000"),
        30_000,
      );
      return child;
    };
    const gone = (name: string): Promise<string> =>
      eventually(
        () => run(["ls"]).out,
        (out) => !out.includes(name),
        30_000,
      );
    // Positive control: one that is not killed stays.
    const [first, second] = [await runs("held-one"), await runs("held-two")];
    first.kill("SIGKILL");
    expect(await gone("held-one")).toContain("held-two");
    second.kill("SIGKILL");
    await server.kill();
    await server.up();
    expect(run(["ls"]).out).not.toContain("held-two");
  });

  test("CLI-1: exec -d leaves a command running that ps, logs and kill know", () => {
    const id = run(["exec", "-d", "try", "--", "sh", "-c", "echo begun; exec sleep 100"]).out.trim();
    expect(id).toMatch(/^cmd[0-9a-z]{26}$/);
    expect(run(["ps", "try"]).out).toContain(id);
    expect(run(["logs", "try", id]).out).toBe("begun\n");
    expect(run(["kill", "try", id])).toMatchObject({ code: 0 });
  });

  test("CLI-1: exec -d -t leaves a command running on a terminal, to which attach passes keys and ctrl-C", async () => {
    const line = "tty; trap 'echo caught; exit 7' INT; read typed; echo got $typed; while :; do sleep 0.1; done";
    const id = run(["exec", "-d", "-t", "try", "--", "sh", "-c", line]).out.trim();
    const terminal = new Terminal(server, ["attach", "try", id]);
    try {
      await terminal.until("/dev/pts/");
      await terminal.until("got word", "word\r");
      await terminal.until("caught", "\u0003");
      expect(await terminal.end()).toBe(7);
    } finally {
      terminal.close();
    }
    const plain = run(["exec", "-d", "try", "--", "sh", "-c", "tty; sleep 60"]).out.trim();
    expect(JSON.parse(run(["ps", "--json", "try"]).out).commands).toMatchObject([{ id: plain, terminal: false }]);
    run(["kill", "try", plain, "--signal", "KILL"]);
  });

  test("CLI-1: the beginning of a command's id is enough for logs, attach and kill, where it is one command's alone", () => {
    const id = run(["exec", "-d", "try", "--", "sh", "-c", "echo begun; trap 'exit 3' TERM; while :; do sleep 0.05; done"]).out.trim();
    const short = id.slice(0, 9);
    expect(run(["logs", "try", short]).out).toBe("begun\n");
    expect(run(["kill", "try", short])).toMatchObject({ code: 0, out: `${id}\n` });
    expect(run(["attach", "--no-stdin", "try", short.slice(3)])).toMatchObject({ code: 3, out: "begun\n" });
    expect(run(["kill", "try", "cmd"])).toMatchObject(failure(2, /is the beginning of \d+ ids/));
  });

  test("CLI-1: the completion for bash is clean and offers what fits each place", () => {
    const id = run(["exec", "-d", "try", "--", "sleep", "100"]).out.trim();
    const script = run(["completion", "bash"]).out;
    const shell = `set -eu\nPATH=$(dirname ${PROGRAM}):$PATH\nsource /dev/stdin <<'END'\n${script}\nEND
      offer() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _viv; echo "\${COMPREPLY[*]}"; }
      offer viv cre; offer viv exec tr; offer viv files pu; offer viv create --mem
      offer viv inspect try ""; offer viv rm try ""; offer viv kill try cmd; offer viv try --pick ""; offer viv try --pick = as
      cd "$HERE"; offer viv create --project s; offer viv exec try -- tru; offer viv cp tr`;
    const answer = spawnSync("bash", ["-c", shell], { env: vivEnvironment(server, { HERE: server.project }), encoding: "utf8" });
    run(["kill", "-s", "KILL", "try", id]);
    expect(answer).toMatchObject({ stderr: "", status: 0 });
    const [commands, values] = [
      ["create", "try", "put", "--memory"],
      ["auto ask none", "ask"],
    ];
    const lines = answer.stdout.split("\n");
    expect(lines.slice(0, -1)).toEqual([...commands, "", "", id, ...values, "src", expect.stringMatching(/\btrue\b/), "try:"]);
  });
});

/** Without what is said while something takes long. */
function patient(said: string): string {
  return said.replaceAll(/^(Looking at the machine|Starting the server) \.\.\.\n/gm, "");
}

describe("a newcomer's first steps", needs("root"), () => {
  const place = mkdtempSync(join(tmpdir(), "viv-test-"));
  const paths = { home: join(place, "state"), config: join(place, "config.json") } as TestServer["paths"];
  const run = (words: string[], options: VivOptions = {}): Answer => {
    const answer = viv({ place, paths }, words, { cwd: place, ...options });
    return { ...answer, err: patient(answer.err) };
  };

  beforeAll(() => {
    mkdirSync(join(place, "project/.git"), { recursive: true });
    writeFileSync(join(place, "project/file"), "mine\n");
    writeFileSync(join(place, "project/.git/HEAD"), "ref: refs/heads/main\n");
  });

  afterAll(() => {
    run(["prune", "--all"]);
    run(["down"]);
    rmSync(place, { recursive: true });
  });

  test("CLI-1: the first command starts the server by itself; it can be stopped and comes back", () => {
    expect(run(["status"])).toMatchObject({ out: expect.stringMatching(/no server/i) });
    expect(run(["create", "--name", "one", "--network", "off"], { cwd: join(place, "project") })).toMatchObject({
      code: 0,
      out: "one\n",
      err: "",
    });
    expect(run(["down"])).toMatchObject({ code: 0, out: expect.stringContaining("Sandboxes go on.") });
    expect(run(["exec", "one", "--", "cat", "file"])).toMatchObject({
      code: 0,
      out: "mine\n",
      err: "",
    });
    expect(run(["rm", "one"])).toMatchObject({ code: 0 });
    expect(run(["down"])).toMatchObject({ code: 0 });
  });

  test("CLI-1: the doctor answers when the server can't start, and says why", () => {
    writeFileSync(paths.config, '{\n  "ceilings": 3\n}\n');
    expect(run(["create"], { cwd: join(place, "project") })).toMatchObject(failure(2, /config\.json:2: ceilings/));
    const answer = run(["doctor"]);
    expect(answer).toMatchObject({ code: 1, err: "" });
    expect(answer.out).toMatch(/✗ server: .*config\.json:2: ceilings.*\n +Correct the named line/);
    expect(answer.out).toMatch(/✓ walls: /);
    rmSync(paths.config);
    expect(run(["doctor"])).toMatchObject({ code: 0, out: expect.stringMatching(/✓ storage: btrfs(.|\n)*✓ limits/) });
    run(["down"]);
  });

  test("CLI-1: without the native helper the doctor says what is missing, and create refuses with that", () => {
    const hidden = (words: string): Answer => {
      // In a mount namespace of its own, where the build folder is empty.
      const script = `for folder in build dist; do [ ! -d ${CHECKOUT}/$folder ] || mount -t tmpfs none ${CHECKOUT}/$folder; done; ${PROGRAM} ${words}; code=$?; ${PROGRAM} down >/dev/null; exit $code`;
      const ended = spawnSync("unshare", ["-m", "sh", "-c", script], {
        cwd: join(place, "project"),
        env: vivEnvironment({ place, paths }),
      });
      return { code: ended.status, out: ended.stdout.toString(), err: patient(ended.stderr.toString()), bytes: ended.stdout };
    };
    const doctor = hidden("doctor");
    expect(doctor).toMatchObject({ code: 1, err: "" });
    expect(doctor.out).toMatch(/✗ native helper: The cell is not built\.\n +Install a C compiler.*npm run setup/);
    expect(doctor.out).toMatch(/✗ walls: /);
    expect(hidden("create")).toMatchObject(failure(2, /walls/));
  });
});
