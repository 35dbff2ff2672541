import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const PORT = 38_613;

/** Counts its visitors in a file of its data folder. */
const COUNTER = `
const { readFileSync, writeFileSync } = require("node:fs");
const [port, folder] = process.argv.slice(2);
require("node:http").createServer((request, response) => {
  const count = Number(readFileSync(folder + "/count", "utf8")) + 1;
  writeFileSync(folder + "/count", String(count));
  response.end(String(count));
}).listen(Number(port), "127.0.0.1", () => console.log("listening"));
`;

describe("services of a project", needs("root"), () => {
  let server: TestServer;
  let real: ChildProcess;
  let data: string;

  beforeAll(async () => {
    server = await TestServer.start({ config: { expose: [dirname(process.execPath)] }, files: { "counter.js": COUNTER } });
    data = join(server.place, "data");
    mkdirSync(data);
    writeFileSync(join(data, "count"), "100");
    real = spawn(process.execPath, [join(server.project, "counter.js"), String(PORT), data], { stdio: ["ignore", "pipe", "inherit"] });
    if (real.stdout !== null) await once(real.stdout, "data");
    const counter = { command: [process.execPath, "counter.js", String(PORT), data], data: [data], ports: [PORT] };
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ services: { counter } }));
  });

  afterAll(async () => {
    real.kill("SIGKILL");
    await server.remove();
  });

  async function visit(sandbox: string): Promise<string> {
    const tunnel = await server.client.dial(sandbox, PORT);
    tunnel.write("GET / HTTP/1.0\r\n\r\n");
    return (await text(tunnel)).split("\r\n\r\n")[1] ?? "";
  }

  const visitReal = async (): Promise<string> => (await fetch(`http://127.0.0.1:${PORT}`)).text();

  test("CLONE-7: do not start from a config that no person trusted", async () => {
    const box = await server.create();
    expect(box.untrusted).toEqual(["services"]);
    await expect(server.client.dial(box.id, PORT)).rejects.toMatchObject({ code: "port_unreachable" });
    await server.client.call("removeSandbox", { sandbox: box.id });
  });

  test("CLONE-7: answer in every clone on the real one's port, each with its own copy of the data", async () => {
    await server.client.call("trust", { project: server.project });
    expect(await visitReal()).toBe("101");
    const [left, right] = await Promise.all([server.create(), server.create()]);
    if (left === undefined || right === undefined) throw new Error("no sandboxes");
    expect([await visit(left.id), await visit(left.id), await visit(left.id)]).toEqual(["102", "103", "104"]);
    expect(await visit(right.id)).toBe("102");
    expect(await visitReal()).toBe("102");
    expect(readFileSync(join(data, "count"), "utf8")).toBe("102");
    const { commands } = await server.client.call("listCommands", { sandbox: left.id });
    expect(commands).toMatchObject([{ running: true, user: "0" }]);
    await server.sh(left.id, `rm -r ${data}`);
    expect(readFileSync(join(data, "count"), "utf8")).toBe("102");
    await server.client.call("removeSandbox", { sandbox: left.id });
    expect(await visit(right.id)).toBe("103");
    await server.client.call("removeSandbox", { sandbox: right.id });
  });

  test("CLONE-7: start again in forks and after a rollback, from the data of that state", async () => {
    const box = await server.create();
    const first = Number(await visit(box.id));
    await server.client.call("createSnapshot", { sandbox: box.id, name: "before" });
    await visit(box.id);
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box.id });
    const fork = sandboxes[0]?.id ?? "";
    expect(Number(await visit(fork))).toBe(first + 2);
    await server.client.call("rollback", { sandbox: box.id, snapshot: "before" });
    expect(Number(await visit(box.id))).toBe(first + 1);
    for (const sandbox of [box.id, fork]) await server.client.call("removeSandbox", { sandbox });
  });

  test("CLONE-7: that cannot start leave a sandbox that works, and an event that says why", async () => {
    const services = {
      absent: { command: ["/no/such/program"] },
      silent: { command: "sleep 60", ports: [PORT + 1], readyTimeout: 200 },
      broken: { command: "echo the disk is on fire >&2; exit 3", ports: [PORT + 2], readyTimeout: "10m" },
      unwell: { command: "sleep 60", ready: "exit 1", readyTimeout: 200 },
      unloaded: { command: "true", data: ["/opt/copy"], take: 'echo 1 > "$VIV_DATA/one"', load: 'cat "$VIV_DATA/two"' },
    };
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ services }));
    await server.client.call("trust", { project: server.project });
    const box = await server.create();
    expect((await server.sh(box.id, "echo works")).stdout).toBe("works\n");
    const { events } = await eventually(
      () => server.client.call("listEvents", { sandbox: box.id, limit: 1000 }),
      ({ events: seen }) => seen.filter(({ type }) => type === "service.failed").length === 5,
    );
    const failures = events.filter(({ type }) => type === "service.failed").map(({ data: about }) => about);
    expect(failures).toContainEqual({
      service: "absent",
      reason: "/no/such/program can't be run: no such program, or the interpreter it names is missing.",
    });
    expect(failures).toContainEqual({ service: "silent", reason: `Nothing answered on port ${PORT + 1} within 200 ms.` });
    expect(failures).toContainEqual({ service: "broken", reason: "It ended with 3: the disk is on fire" });
    expect(failures).toContainEqual({ service: "unwell", reason: "It was not ready within 200 ms." });
    const unloaded = "Its load line ended with 1: cat: /opt/copy/two: No such file or directory";
    expect(failures).toContainEqual({ service: "unloaded", reason: unloaded });
    await server.client.call("removeSandbox", { sandbox: box.id });
  });
});
