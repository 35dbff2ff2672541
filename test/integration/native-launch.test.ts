import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { CellHost } from "../../src/base/host/cell-host.ts";
import { FrameError, type FieldList } from "../../src/base/host/frames.ts";
import { DriverLab, FILES } from "../support/driver-lab.ts";
import { missing, needs } from "../support/skip.ts";

/** Launches that come to nothing between their two requests. */
describe("a launch", needs("linux", missing("root") === undefined ? "root" : "user-namespaces"), () => {
  let lab: DriverLab;
  let helper: number | undefined;
  beforeAll(async () => {
    lab = await DriverLab.open("native", FILES);
  });
  afterEach(() => void vi.restoreAllMocks());
  afterAll(async () => lab?.remove());

  /** What a driver tells the helper of a disk does not get there, as where it is longer than a frame. */
  function untoldDisks(): void {
    // oxlint-disable-next-line typescript/unbound-method -- it is called with its own object
    const { request } = CellHost.prototype;
    vi.spyOn(CellHost.prototype, "request").mockImplementation(async function (this: CellHost, operation: string, fields: FieldList = []) {
      helper = this.pid;
      if (operation === "launch.disk" && fields.some(([key]) => key === "mount")) throw new FrameError("a frame holds less");
      return request.call(this, operation, fields);
    });
  }

  const children = (): string => readFileSync(`/proc/${helper}/task/${helper}/children`, "utf8").trim();

  test("whose disk can't be told is given up at once, and leaves no process that waits for it", async () => {
    untoldDisks();
    const begun = performance.now();
    await expect(lab.create()).rejects.toThrow("a frame holds less");
    expect(performance.now() - begun).toBeLessThan(10_000);
    await expect.poll(children).toBe("");
    vi.restoreAllMocks();
    expect((await lab.run(await lab.create(), "cat a.txt")).stdout).toBe(FILES["a.txt"]);
  });
});
