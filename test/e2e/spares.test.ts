/** Sandboxes made ahead: as many as were lately asked for at once, and no longer than they are of use. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { namesIn } from "../../src/base/host/names-in.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const AT_ONCE = 4;

describe("sandboxes made ahead", needs("root", "btrfs"), () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await TestServer.start();
  });
  afterEach(async () => server?.remove());

  async function createAtOnce(count: number): Promise<string[]> {
    return (await Promise.all(Array.from({ length: count }, () => server.create()))).map(({ id }) => id);
  }

  /** Ids of launched sandboxes that have no row. */
  async function ahead(): Promise<string[]> {
    const folder = join(server.paths.home, "run");
    const { sandboxes } = await server.client.call("listSandboxes", {});
    const known = new Set(sandboxes.map(({ id }) => id));
    return namesIn(folder).filter((name) => !known.has(name) && existsSync(join(folder, name, "egress.sock")));
  }

  const aheadAre = (count: number): Promise<string[]> => eventually(ahead, (found) => found.length === count, 20_000);

  test("creates that come one after the other have one made ahead", async () => {
    for (let index = 0; index < AT_ONCE; index += 1) await server.create();
    const [only = ""] = await aheadAre(1);
    const { id } = await server.create();
    expect(id).toBe(only);
    await aheadAre(1);
  });

  test("creates that come at once find as many made ahead the next time, each sandbox once", async () => {
    const first = await createAtOnce(AT_ONCE);
    const waiting = await aheadAre(AT_ONCE);
    const second = await createAtOnce(AT_ONCE);
    expect(second.toSorted()).toEqual(waiting.toSorted());
    for (const id of [...first, ...second]) expect((await server.sh(id, "echo up")).stdout).toBe("up\n");
    await aheadAre(AT_ONCE);
  });

  test("none is left when the project has no sandbox, and of those of a base that has moved on none is left as it was", async () => {
    await createAtOnce(AT_ONCE);
    const old = await aheadAre(AT_ONCE);
    writeFileSync(join(server.project, "later.txt"), "new");
    const { id } = await server.create();
    expect((await server.sh(id, "cat later.txt")).stdout).toBe("new");
    await eventually(ahead, (found) => !found.some((name) => old.includes(name)));
    const { sandboxes } = await server.client.call("listSandboxes", {});
    for (const sandbox of sandboxes) await server.client.call("removeSandbox", { sandbox: sandbox.id });
    await aheadAre(0);
  });
});
