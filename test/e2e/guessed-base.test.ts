/** A create begins with the base that the project most likely still has, and finds out meanwhile whether it has. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { traces } from "../support/machine.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

describe("a create with a name", needs("root"), () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start({ files: { value: "old\n" }, config: { spares: false } });
  });
  afterAll(async () => server?.remove());

  async function made(name: string): Promise<{ id: string; seen: string | undefined }> {
    const { id, result } = await server.client.call("createSandbox", { project: server.project, name, run: { command: ["cat", "value"] } });
    return { id, seen: result?.stdout };
  }

  const typesOf = async (sandbox: string): Promise<string[]> =>
    (await server.client.call("listEvents", { sandbox, limit: 100 })).events.map(({ type }) => type);

  test("has what the project is now, and of a wrong guess nothing stays", async () => {
    const first = await made("first");
    expect(first.seen).toBe("old\n");
    writeFileSync(join(server.project, "value"), "new\n");
    const second = await made("second");
    expect(second.seen).toBe("new\n");
    const ids = [first.id, second.id].toSorted();
    await eventually(
      () => traces(server),
      ({ volumes, runs, logs }) => [volumes, runs, logs].every((found) => found.join(" ") === ids.join(" ")),
    );
    const { events } = await server.client.call("listEvents", { limit: 200 });
    expect(events.filter(({ type }) => type === "sandbox.failed")).toEqual([]);
    expect((await server.client.call("listSandboxes", {})).sandboxes.map(({ name }) => name).toSorted()).toEqual(["first", "second"]);
  });

  test("tells of its command after it tells of the sandbox", async () => {
    const { id } = await made("third");
    const types = await eventually(
      () => typesOf(id),
      (found) => found.includes("command.ended"),
    );
    expect(types).toEqual(["sandbox.creating", "sandbox.running", "command.started", "command.ended"]);
  });

  test("fails as a whole where its command can't be started, and leaves the name free", async () => {
    const create = server.client.call("createSandbox", { project: server.project, name: "fourth", run: { command: ["/no/such/program"] } });
    await expect(create).rejects.toMatchObject({ code: expect.any(String) });
    expect((await made("fourth")).seen).toBe("new\n");
  });
});
