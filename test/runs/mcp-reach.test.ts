/** MCP-1: a chat looks at what chats made and at projects that the person opened, and at nothing else. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ChatLab, refusal, use } from "../support/agents/chat-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

const SECRET = "a closed text";

describe("a chat client", needs("root"), () => {
  let lab: ChatLab;
  let client: Client;
  /** A sandbox, an experiment and a run of a project that is not opened. */
  let closed: { project: string; sandbox: string; experiment: string; run: string };

  beforeAll(async () => {
    lab = await ChatLab.open();
    client = await lab.client({ words: ["--project", lab.server.project] });
    const project = join(lab.server.place, "closed");
    mkdirSync(project);
    writeFileSync(join(project, "vivarium.json"), "{}");
    writeFileSync(join(project, "private.txt"), SECRET);
    const { id: sandbox } = await lab.server.create({ project });
    await lab.server.sh(sandbox, "cp private.txt copy.txt");
    const started = await lab.server.client.call("startExperiment", {
      project,
      attempts: [{ agent: { task: `call cp private.txt told.txt\ntext ${SECRET}`, agent: "claude" } }],
      checks: [],
      pick: "none",
      env: { PATH: ChatLab.path },
    });
    closed = { project, sandbox, experiment: started.id, run: started.attempts[0]?.run ?? "" };
    await eventually(
      () => lab.server.client.call("inspectRun", { run: closed.run }),
      ({ endedAt }) => endedAt !== null,
    );
  });
  afterAll(async () => lab?.remove());

  test.for(["get_sandbox_status", "wait", "diff", "download_files", "promote", "cleanup_sandbox"])(
    "MCP-1: is refused by %s what belongs to a project that is not opened (attack)",
    async (tool) => {
      for (const session_id of [closed.sandbox, closed.experiment, closed.run]) {
        const said = await refusal(client, tool, { session_id });
        expect(said).toMatch(/belongs to no folder that the person has opened/);
        expect(said).toContain("viv mcp --project");
        expect(said).not.toContain(SECRET);
      }
    },
  );

  test("MCP-1: is refused the logs, diffs and files of such a project as resources, too (attack, with a control)", async () => {
    const read = (uri: string): Promise<unknown> => client.readResource({ uri });
    for (const uri of [
      `viv://${closed.run}/log`,
      `viv://${closed.run}/diff`,
      `viv://${closed.sandbox}/diff`,
      `viv://${closed.sandbox}/files/private.txt`,
      `viv://${closed.run}/files/told.txt`,
    ])
      await expect(read(uri), uri).rejects.toThrow(/belongs to no folder/);
    const listed = JSON.stringify([await client.listResources(), await use(client, "list")]);
    for (const hidden of [SECRET, closed.project, closed.sandbox, closed.experiment, closed.run]) expect(listed).not.toContain(hidden);
    const opening = await lab.client({ words: ["--project", closed.project] });
    expect(await opening.readResource({ uri: `viv://${closed.sandbox}/files/private.txt` })).toMatchObject({
      contents: [{ text: SECRET }],
    });
    const now = JSON.stringify([await opening.listResources(), await use(opening, "list")]);
    for (const shown of [closed.project, closed.sandbox, closed.experiment, closed.run]) expect(now).toContain(shown);
  });

  test("MCP-1: sees work of another chat, which has no project", async () => {
    const { session_id } = await use(client, "execute_task", { task_description: "call echo made > made.txt" });
    const other = await lab.client();
    expect(await use(other, "get_sandbox_status", { session_id })).toMatchObject({ status: "completed", files_created: ["made.txt"] });
    expect(JSON.stringify(await use(other, "list"))).toContain(String(session_id));
  });

  test("MCP-1: starts no sandbox of the person again to read its files", async () => {
    const { id, name } = await lab.server.create();
    await lab.server.sh(id, "echo mine > mine.txt");
    expect(await use(client, "download_files", { session_id: id })).toMatchObject({ files: [{ path: "mine.txt" }] });
    expect(viv(lab.server, ["stop", name]).code).toBe(0);
    expect(await refusal(client, "download_files", { session_id: id })).toContain("was not made by these tools");
    expect(await lab.server.client.call("findSandbox", { sandbox: id })).toMatchObject({ state: "completed" });
  });

  test("MCP-1: has a file that it gave among the results only where the task changed it", async () => {
    const files = ["edited.txt", "kept.txt", "gone.txt", "same.txt"].map((path) => ({ path, text: "as it was\n" }));
    const done = await use(client, "execute_task", {
      task_description: "call sed -i s/was/is/ edited.txt; touch kept.txt; rm gone.txt; cp same.txt x && mv x same.txt; echo new > new.txt",
      files,
    });
    expect(done).toMatchObject({ status: "completed", files_created: ["edited.txt", "new.txt"] });
    const { session_id } = done;
    const { sandbox } = await lab.server.client.call("inspectRun", { run: String(session_id) });
    await lab.server.client.call("stopSandbox", { sandbox: sandbox ?? "" });
    expect(await use(client, "get_sandbox_status", { session_id })).toMatchObject({ files_created: ["edited.txt", "new.txt"] });
    expect(await use(client, "download_files", { session_id })).toMatchObject({
      files: [{ path: "edited.txt", content: Buffer.from("as it is\n").toString("base64") }, { path: "new.txt" }],
    });
  });
});
