import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { encodeFields, encodeFrame, KIND } from "../../../base/host/frames.ts";
import { CellClient } from "./cell-client.ts";

const REPLY = encodeFrame(
  KIND.reply,
  encodeFields([
    ["ok", "1"],
    ["pid", "5"],
  ]),
);
const EXIT = encodeFrame(
  KIND.exit,
  encodeFields([
    ["code", "0"],
    ["bytes", "0"],
    ["kept", "1"],
  ]),
);

test("much output that no one has read yet does not hold the connection for the next command", async () => {
  const place = mkdtempSync(join(tmpdir(), "viv-kept-"));
  const [sockets, asked]: [Socket[], Socket[]] = [[], []];
  const byte = encodeFrame(KIND.stdout, Buffer.from("x"));
  const answers = [Buffer.concat([REPLY, ...Array.from({ length: 2_000 }, () => byte), EXIT]), Buffer.concat([REPLY, EXIT])];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("data", () => {
      asked.push(socket);
      socket.write(answers.shift() ?? "");
    });
  });
  await new Promise<void>((resolve) => server.listen(join(place, "s"), resolve));
  try {
    const client = new CellClient(join(place, "s"), 2_000);
    const exec = (id: string) =>
      client.exec({ id, command: ["true"], env: {}, cwd: "/", user: "root", stdin: false, logBytes: 0, brief: true });
    const unread = await exec("a");
    await unread.exit;
    expect((await (await exec("b")).exit).code).toBe(0);
    expect(asked[1]).toBe(asked[0]);
    let bytes = 0;
    for await (const chunk of unread.output) bytes += chunk.stream === "stdout" ? chunk.data.length : 0;
    expect(bytes).toBe(2_000);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
    rmSync(place, { recursive: true });
  }
});
