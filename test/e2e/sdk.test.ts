/** The SDK against a real server: what docs/SDK.md promises of each call. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Vivarium as BrowserVivarium } from "../../src/interfaces/sdk/browser.ts";
import { Vivarium, VivariumError, type Sandbox, type VivariumEvent } from "../../src/interfaces/sdk/node.ts";
import { eventually, freePort, TestServer } from "../support/server.ts";
import { WEB_SERVER } from "../support/sdk-programs.ts";
import { needs } from "../support/skip.ts";

describe("the SDK (API-1)", needs("root"), () => {
  let server: TestServer;
  let viv: Vivarium;
  let box: Sandbox;
  let place: string;

  beforeAll(async () => {
    const port = await freePort();
    server = await TestServer.start({ flags: ["--listen", String(port)], files: { "hello.txt": "hello\n", "serve.cjs": WEB_SERVER } });
    viv = new Vivarium({ home: server.paths.home, start: false });
    box = await viv.create({ project: server.project });
    place = mkdtempSync(join(tmpdir(), "viv-sdk-"));
  });
  afterAll(async () => {
    viv.close();
    await server.remove();
    rmSync(place, { recursive: true, force: true });
  });

  const overTcp = async (): Promise<{ url: string; token: string }> => {
    const { listen } = await viv.status();
    return { url: `http://${(listen ?? "").replace(/^https?:\/\//, "")}`, token: readFileSync(server.paths.token, "utf8").trim() };
  };

  describe("a command", () => {
    test("gives its exit code as a value, and both outputs, also as they come", async () => {
      const heard: string[] = [];
      const result = await box.run("echo out; echo err >&2; exit 3", { onStdout: (text) => heard.push(text) });
      expect(result).toMatchObject({ exitCode: 3, stdout: "out\n", stderr: "err\n", cause: "exit", truncated: false });
      expect(heard.join("")).toBe("out\n");
    });

    test("takes words as they are, input, variables, a folder, a user and a time limit", async () => {
      expect((await box.run(["printf", "%s", "a  b"])).stdout).toBe("a  b");
      expect((await box.run(["cat"], { stdin: "typed ✓" })).stdout).toBe("typed ✓");
      expect((await box.run("echo $A; pwd", { env: { A: "1" }, cwd: "/tmp" })).stdout).toBe("1\n/tmp\n");
      expect((await box.run("id -u", { user: "65534", cwd: "/" })).stdout).toBe("65534\n");
      expect(await box.run("sleep 60", { timeoutMs: 100 })).toMatchObject({ exitCode: 124, cause: "timeout" });
    });

    test("is killed when the call is cancelled, which rejects with `cancelled`", async () => {
      const stop = new AbortController();
      const running = box.run("echo begun; sleep 600", { signal: stop.signal, onStdout: () => stop.abort() });
      await expect(running).rejects.toMatchObject({ code: "cancelled", status: 499 });
      await eventually(
        () => box.commands(),
        (commands) => commands.every(({ command }) => !command.join(" ").includes("sleep 600")),
      );
      await expect(box.run("true", { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "cancelled" });
      const streamed = new AbortController();
      const execution = await box.exec("echo begun; sleep 600", { signal: streamed.signal });
      const reading = (async () => {
        for await (const output of execution) if (output.stream === "stdout") streamed.abort();
      })();
      await expect(reading).rejects.toMatchObject({ code: "cancelled" });
      await expect(execution.end).rejects.toMatchObject({ code: "cancelled" });
    });

    test("streams both ways, has a terminal of a size, and takes signals", async () => {
      const cat = await box.exec(["cat"], { stdin: true });
      await cat.write("one");
      const echoed: string[] = [];
      for await (const output of cat) {
        if (output.stream !== "gap") echoed.push(new TextDecoder().decode(output.data));
        cat.endInput();
      }
      expect([echoed.join(""), (await cat.end).exitCode]).toEqual(["one", 0]);
      const terminal = await box.exec("read line; stty size; sleep 600", { terminal: { rows: 10, cols: 20 } });
      terminal.resize({ rows: 30, cols: 40 });
      await terminal.write("go\n");
      let seen = "";
      for await (const output of terminal) {
        if (output.stream === "stdout") seen += new TextDecoder().decode(output.data);
        if (seen.includes("30 40")) terminal.kill("SIGKILL");
      }
      expect(await terminal.end).toMatchObject({ cause: "signal", exitCode: 137 });
    });

    test("that runs in the background is looked at again, and attached to", async () => {
      const { id } = await box.background("echo working; until [ -e /tmp/go ]; do sleep 0.05; done; echo done");
      await eventually(
        () => box.command(id),
        ({ stdout }) => stdout === "working\n",
      );
      const attached = await box.attach(id);
      await box.files.write("/tmp/go", "");
      let seen = "";
      for await (const output of attached) if (output.stream === "stdout") seen += new TextDecoder().decode(output.data);
      expect(seen).toContain("done\n");
      expect(await box.command(id)).toMatchObject({ running: false, end: { exitCode: 0 } });
    });
  });

  test("files are written, read, listed, moved, removed, packed, and copied from and to this machine", async () => {
    const { files } = box;
    await files.mkdir("made");
    expect(await files.write("made/deep/one.bin", new Uint8Array([0, 255]), { parents: true, mode: 0o700 })).toMatchObject({ size: 2 });
    expect([...(await files.readBytes("made/deep/one.bin"))]).toEqual([0, 255]);
    expect(await files.stat("made/deep/one.bin")).toMatchObject({ type: "file", size: 2 });
    await files.move("made/deep/one.bin", "made/two.bin");
    expect((await files.list("made")).map(({ path }) => path).toSorted()).toEqual(["deep", "two.bin"]);
    const report = await files.unpack("/tmp", await files.pack("made"));
    expect(report.files).toBe(1);
    await files.remove("made", { recursive: true });
    await expect(files.read("made/two.bin")).rejects.toMatchObject({ code: "file_not_found" });

    mkdirSync(join(place, "up"));
    writeFileSync(join(place, "up", "a.txt"), "a");
    symlinkSync("a.txt", join(place, "up", "b.txt"));
    expect(await files.upload(join(place, "up"), "/tmp/copied")).toMatchObject({ files: 1, skipped: [] });
    expect(await files.read("/tmp/copied/b.txt")).toBe("a");
    await box.run("ln -s /etc/passwd /tmp/copied/out");
    const down = await files.download("/tmp/copied", join(place, "down"));
    expect(down).toMatchObject({ files: 1, skipped: [{ path: "out", why: "it is a link that leads outside" }] });
    expect(existsSync(join(place, "down", "out"))).toBe(false);
  });

  test("a watch tells changes until it is left", async () => {
    const stop = new AbortController();
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { path } of box.files.watch(".", { signal: stop.signal })) seen.push(path);
    })();
    await eventually(
      () => box.files.write("watched.txt", String(Math.random())),
      () => seen.includes("watched.txt"),
    );
    stop.abort();
    await expect(watching).resolves.toBeUndefined();
  });

  test("snapshots bring a state back, forks go on from it apart", async () => {
    await box.files.write("state.txt", "before");
    const snapshot = await box.snapshot({ name: "kept" });
    await box.files.write("state.txt", "after");
    const [one, two] = await box.fork(2, { snapshot });
    await one?.files.write("state.txt", "mine");
    expect([await one?.files.read("state.txt"), await two?.files.read("state.txt")]).toEqual(["mine", "before"]);
    await box.rollback(snapshot);
    expect(await box.files.read("state.txt")).toBe("before");
    expect((await box.snapshots()).map(({ name }) => name)).toContain("kept");
    await Promise.all([one?.remove(), two?.remove()]);
  });

  test("a port inside answers fetch, a WebSocket, and a port of this machine", async () => {
    await box.background(["node", "serve.cjs"]);
    const port = box.port(3000);
    await eventually(
      () =>
        port.fetch("/").then(
          ({ status }) => status,
          () => 0,
        ),
      (status) => status === 200,
    );
    const response = await port.fetch("/x?y=1", { method: "POST", body: "sent", headers: { "x-sent": "yes" } });
    expect([response.status, response.headers.get("x-seen"), await response.text()]).toEqual([200, "yes", "POST /x?y=1 sent"]);
    expect((await port.fetch("/missing")).status).toBe(404);
    await expect(box.port(9).fetch("/")).rejects.toMatchObject({ code: "port_unreachable" });
    const socket = await port.webSocket("/ws");
    const messages: unknown[] = [];
    for await (const message of socket) {
      messages.push(message);
      await socket.send("bye");
    }
    expect(messages).toEqual(["hello"]);
    const local = await port.listen();
    expect(await (await fetch(`${local.url}/here`)).text()).toBe("GET /here ");
    expect((await viv.get(box.id)).info.uses.join()).toContain("port 3000");
    await local.close();
    await expect(fetch(local.url)).rejects.toThrow();
  });

  test("`await using` removes a sandbox, pause and resume, stop and start keep it", async () => {
    let id: string;
    {
      await using short = await viv.create({ project: server.project });
      id = short.id;
      expect((await short.pause()).info.state).toBe("paused");
      expect((await short.resume()).info.state).toBe("running");
      await short.files.write("kept.txt", "kept");
      await short.stop();
      await short.start();
      expect(await short.files.read("kept.txt")).toBe("kept");
    }
    await expect(viv.get(id)).rejects.toMatchObject({ code: "not_found" });
  });

  test("several approaches are tried, the winner is promoted, and that is undone", async () => {
    const updates: string[] = [];
    const experiment = await viv.try(["exit 1", { name: "good", command: "echo fixed > fixed.txt" }], {
      project: server.project,
      checks: ["grep -q fixed fixed.txt"],
      onUpdate: ({ state }) => updates.push(state),
    });
    expect([experiment.state, experiment.winner?.name, experiment.winner?.passed]).toEqual(["done", "good", true]);
    expect(experiment.attempts.map(({ passed }) => passed)).toEqual([false, true]);
    expect(updates.at(-1)).toBe("done");
    const promotion = await experiment.winner?.promote();
    expect([promotion?.state, readFileSync(join(server.project, "fixed.txt"), "utf8")]).toEqual(["applied", "fixed\n"]);
    expect((await viv.undo({ project: server.project })).state).toBe("applied");
    expect(existsSync(join(server.project, "fixed.txt"))).toBe(false);
    await experiment.remove();
  });

  test("a try that is cancelled stops its attempts", async () => {
    const stop = new AbortController();
    const options = { project: server.project, signal: stop.signal, onUpdate: () => stop.abort() };
    await expect(viv.try(["sleep 600"], options)).rejects.toMatchObject({ code: "cancelled" });
    const { experiments } = await viv.call("listExperiments", { project: server.project });
    expect(experiments[0]).toMatchObject({ state: "cancelled" });
  });

  test("options that do not exist are refused, by the SDK and by the server", async () => {
    const wrong = (options: object): never => options as never;
    expect(() => new Vivarium(wrong({ tokn: "x" }))).toThrow('new Vivarium has no option "tokn".');
    await expect(box.run("true", wrong({ timeoutMS: 1 }))).rejects.toThrow('run has no option "timeoutMS".');
    await expect(box.pause(wrong({ now: true }))).rejects.toMatchObject({ code: "invalid_input" });
    await expect(viv.create(wrong({ projet: "/" }))).rejects.toThrow('Unknown field "projet".');
    await expect(viv.call("status", wrong({ x: 1 }))).rejects.toMatchObject({ code: "invalid_input" });
  });

  test("questions are listed and waited for, and only a person's token answers them", async () => {
    const waiting = viv.approvals.wait();
    const one = await viv.create({ project: server.project, level: 1 });
    expect(await viv.call("decideAction", { sandbox: one.id, action: { kind: "command", command: "git push" } })).toMatchObject({
      verdict: "ask",
    });
    const question = await waiting;
    expect(question).toMatchObject({ state: "waiting", target: "git push" });
    await expect(viv.approvals.approve(question)).rejects.toMatchObject({ code: "unauthorized" });
    const person = new Vivarium({ home: server.paths.home, start: false, approver: server.approver() });
    expect(await person.approvals.deny(question)).toMatchObject({ state: "denied" });
    person.close();
    await one.remove();
  });

  test("events are told once each, over a restart of the server", { timeout: 120_000 }, async () => {
    const stop = new AbortController();
    const seen: VivariumEvent[] = [];
    const { newest } = await viv.call("listEvents", { limit: 1 });
    const listening = (async () => {
      for await (const event of viv.events({ after: newest, signal: stop.signal })) seen.push(event);
    })();
    await viv.call("extendSandbox", { sandbox: box.id });
    await eventually(
      () => seen.length,
      (count) => count > 0,
    );
    await server.kill();
    await server.up();
    await viv.call("extendSandbox", { sandbox: box.id });
    await eventually(
      () => seen.filter(({ type }) => type === "sandbox.extended").length,
      (count) => count === 2,
      30_000,
    );
    stop.abort();
    await listening;
    const numbers = seen.map(({ sequence }) => sequence);
    expect(numbers).toEqual([...new Set(numbers)].toSorted((one, other) => one - other));
  });

  test("the client for browsers does the same over TCP, and says what needs Node", async () => {
    const page = new BrowserVivarium(await overTcp());
    const same = await page.get(box.id);
    const heard: string[] = [];
    expect(await same.run(["cat"], { stdin: "typed", onStdout: (text) => heard.push(text) })).toMatchObject({
      exitCode: 0,
      stdout: "typed",
    });
    await same.files.write("from-page.txt", "page");
    expect(await same.files.read("from-page.txt")).toBe("page");
    const stop = new AbortController();
    for await (const event of page.events({ after: 0, signal: stop.signal })) {
      expect(event.sequence).toBeGreaterThan(0);
      break;
    }
    await expect(same.files.upload("/tmp", "/tmp")).rejects.toMatchObject({ code: "unsupported", message: "files.upload needs Node." });
    const stranger = new BrowserVivarium({ ...(await overTcp()), token: "wrong" });
    await expect(stranger.status()).rejects.toMatchObject({ code: "unauthorized", status: 401 });
    await expect((await new Vivarium(await overTcp()).get(box.id)).run("echo node")).resolves.toMatchObject({ stdout: "node\n" });
  });

  test("a server that does not run is an error with its remedy, where it must not be started", async () => {
    const error: unknown = await new Vivarium({ home: join(place, "nowhere"), start: false }).status().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(VivariumError);
    expect(error).toMatchObject({ code: "server_unreachable", status: 503, remedy: expect.stringContaining("viv up") as string });
  });
});
