/** A server is killed while processes of a sandbox start. What the next one finishes is as if the first had not been killed. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

const PORT = 38_713;
const VARIABLE = "VIV_SECRET_NPM_NPM_TEST";
const LOGIN = "//npm.test/:_authToken=";

/** Answers with the placeholder of the imported login, as its own environment has it. */
const GREETER = `
require("node:http")
  .createServer((request, response) => response.end(process.env["${VARIABLE}"] ?? "no placeholder"))
  .listen(${PORT}, "127.0.0.1");
`;

describe("a rollback that recovery finishes", needs("root"), () => {
  let home: string;
  let server: TestServer;

  beforeAll(async () => {
    mkdirSync("/home", { recursive: true });
    home = mkdtempSync("/home/viv-test-");
    writeFileSync(join(home, ".npmrc"), `${LOGIN}the-real-token\n`, { mode: 0o600 });
    const greeter = { command: [process.execPath, "greeter.js"], ports: [PORT] };
    server = await TestServer.start({
      config: { expose: [dirname(process.execPath)], spares: false },
      env: { HOME: home },
      files: { "greeter.js": GREETER, "vivarium.json": JSON.stringify({ services: { greeter } }) },
    });
    await server.client.call("trust", { project: server.project });
    const imported = viv(server, ["secret", "import", "--all-projects"], { env: { HOME: home } });
    expect(imported.code, imported.err).toBe(0);
  });

  afterAll(async () => {
    await server.remove();
    rmSync(home, { recursive: true, force: true });
  });

  const settings = async (sandbox: string): Promise<string> => (await server.sh(sandbox, `cat ${home}/.npmrc`)).stdout;

  async function killedInRollback(point: string): Promise<string> {
    const box = await server.create();
    expect(await settings(box.id)).toMatch(placeholderOf(LOGIN));
    expect(await visit(server, box.id)).toMatch(placeholderOf(""));
    await server.client.call("createSnapshot", { sandbox: box.id, name: "before" });
    await server.dieAt(point, () => server.client.call("rollback", { sandbox: box.id, snapshot: "before" }));
    return box.id;
  }

  test("F-34, NET-4: shows settings files with the placeholders of imported logins", async () => {
    const sandbox = await killedInRollback("rollback.volume");
    expect(await settings(sandbox)).toMatch(placeholderOf(LOGIN));
    await server.client.call("removeSandbox", { sandbox });
  });

  test("F-34, CLONE-7: runs the services of the project, with their variables", async () => {
    const sandbox = await killedInRollback("rollback.begun");
    const answer = await eventually(
      () => visit(server, sandbox).catch(() => ""),
      (said) => said !== "",
    );
    expect(answer).toMatch(placeholderOf(""));
    const { commands } = await server.client.call("listCommands", { sandbox });
    expect(commands).toMatchObject([{ running: true, service: "greeter" }]);
    await server.client.call("removeSandbox", { sandbox });
  });
});

describe("a server killed between noting the processes of a sandbox and starting its services", needs("root"), () => {
  let server: TestServer;

  beforeAll(async () => {
    const greeter = { command: [process.execPath, "greeter.js"], ports: [PORT] };
    server = await TestServer.start({
      config: { expose: [dirname(process.execPath)] },
      files: { "greeter.js": GREETER, "vivarium.json": JSON.stringify({ services: { greeter } }) },
    });
    await server.client.call("trust", { project: server.project });
  });
  afterAll(async () => server.remove());

  const ways: Record<string, () => Promise<unknown>> = {
    "a new sandbox": () => server.create({ name: "new" }),
    "a sandbox made of a spare": () => server.create(),
    "a fork": () => server.client.call("forkSandbox", { sandbox: "old" }),
    "a rollback": () => server.client.call("rollback", { sandbox: "old", snapshot: "before" }),
  };

  test.each(Object.entries(ways))("F-01, CLONE-7: of %s, is followed by one that starts them, each once", async (way, begin) => {
    const old = await server.create({ name: "old" });
    await server.client.call("createSnapshot", { sandbox: old.id, name: "before" });
    await server.dieAt("start.recorded", begin);
    const { sandboxes } = await server.client.call("listSandboxes", {});
    expect(sandboxes.map(({ state }) => state)).toEqual(way === "a rollback" ? ["running"] : ["running", "running"]);
    for (const { id } of sandboxes) {
      const running = await eventually(
        async () => (await server.client.call("listCommands", { sandbox: id })).commands,
        (commands) => commands.length > 0,
      );
      expect(running).toMatchObject([{ running: true, service: "greeter" }]);
      await eventually(
        () => visit(server, id).catch(() => ""),
        (said) => said !== "",
      );
    }
    const commands = async (): Promise<string[][]> =>
      Promise.all(
        sandboxes.map(async ({ id }) =>
          (await server.client.call("listCommands", { sandbox: id, all: true })).commands.map((one) => one.id),
        ),
      );
    const before = await commands();
    await server.kill();
    await server.up();
    expect(await commands(), "none is started again").toEqual(before);
    for (const { id } of sandboxes) await server.client.call("removeSandbox", { sandbox: id });
  });
});

async function visit(server: TestServer, sandbox: string): Promise<string> {
  const tunnel = await server.client.dial(sandbox, PORT);
  tunnel.write("GET / HTTP/1.0\r\n\r\n");
  return (await text(tunnel)).split("\r\n\r\n")[1] ?? "";
}

function placeholderOf(before: string): RegExp {
  return new RegExp(`^${before}viv-secret-[\\w-]+\\n?$`);
}
