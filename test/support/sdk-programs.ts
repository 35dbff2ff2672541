/** Programs that use the published SDK, for every runtime that it is to work in, and what each prints. */

/** Finds or starts the server, then does the main job once. */
export const MAIN_JOB = {
  program: `
import { readFileSync } from "node:fs";
import { Vivarium, VivariumError } from "vivarium";
const viv = new Vivarium();
const box = await viv.create();
const { exitCode, stdout } = await box.run("cat hello.txt; exit 3");
const forks = await box.fork(2);
const read = await Promise.all(forks.map((fork) => fork.files.read("hello.txt")));
const tried = await viv.try(["false", "echo better > hello.txt"], { checks: ["grep -q better hello.txt"] });
const promotion = await tried.winner.promote();
const promoted = readFileSync("hello.txt", "utf8");
await viv.undo();
const error = await viv.get("none").catch((reason) => reason);
for (const one of [box, ...forks]) await one[Symbol.asyncDispose]();
await tried.remove();
console.log(JSON.stringify({ exitCode, stdout, read, state: promotion.state, promoted, undone: readFileSync("hello.txt", "utf8"),
  refused: error instanceof VivariumError && error.code, left: (await viv.list()).length }));
viv.close();
`,
  answer: {
    exitCode: 3,
    stdout: "hello\n",
    read: ["hello\n", "hello\n"],
    state: "applied",
    promoted: "better\n",
    undone: "hello\n",
    refused: "not_found",
    left: 0,
  },
};

export const WEB_SERVER = `
  const http = require("http");
  const server = http.createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      response.writeHead(request.url === "/missing" ? 404 : 200, { "x-seen": request.headers["x-sent"] || "" });
      response.end(request.method + " " + request.url + " " + body);
    });
  });
  server.on("upgrade", (request, socket) => {
    socket.on("error", () => socket.destroy());
    const key = require("crypto").createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    socket.write("HTTP/1.1 101 Switching Protocols\\r\\nupgrade: websocket\\r\\nconnection: upgrade\\r\\nsec-websocket-accept: " + key.digest("base64") + "\\r\\n\\r\\n");
    socket.write(Buffer.from([0x81, 5, ...Buffer.from("hello")]));
    socket.on("data", () => socket.end(Buffer.from([0x88, 0])));
  });
  server.listen(3000);
`;

/** Streams, signals, copies, ports, WebSockets, events, over the socket and over TCP. Takes the address and the token of the server; the project has the web server above as serve.cjs. */
export const WHOLE_WIDTH = {
  program: String.raw`import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Vivarium } from "vivarium";
import { Vivarium as Page } from "vivarium/client";

const viv = new Vivarium();
const box = await viv.create();
const done = {};
const cat = await box.exec(["cat"], { stdin: true });
await cat.write("typed");
cat.endInput();
let echoed = "";
for await (const output of cat) if (output.stream === "stdout") echoed += new TextDecoder().decode(output.data);
done.exec = [echoed, (await cat.end).exitCode];
const terminal = await box.exec("stty size", { terminal: { rows: 10, cols: 20 } });
let size = "";
for await (const output of terminal) if (output.stream === "stdout") size += new TextDecoder().decode(output.data);
done.terminal = size.trim();
const stop = new AbortController();
done.cancelled = await box.run("echo on; sleep 600", { signal: stop.signal, onStdout: () => stop.abort() }).catch((error) => error.code);
done.large = (await box.run("head -c 3000000 /dev/zero | tr '\\0' x")).stdout.length;
await box.files.write("a/b.bin", new Uint8Array([0, 255]), { parents: true });
done.bytes = [...(await box.files.readBytes("a/b.bin"))];
const place = mkdtempSync(join(tmpdir(), "viv-runtime-"));
writeFileSync(join(place, "up.txt"), "up");
await box.files.upload(join(place, "up.txt"), "/tmp/up.txt");
await box.files.download("/tmp/up.txt", join(place, "down.txt"));
done.copied = readFileSync(join(place, "down.txt"), "utf8");
await box.background(["node", "serve.cjs"]);
const port = box.port(3000);
for (let tries = 0; tries < 200; tries += 1) {
  const isThere = await port.fetch("/").then(() => true, () => false);
  if (isThere) break;
  await new Promise((resolve) => setTimeout(resolve, 50));
}
done.port = await (await port.fetch("/", { method: "POST", body: "x" })).text();
const socket = await port.webSocket("/");
done.messages = [];
for await (const message of socket) {
  done.messages.push(message);
  await socket.send("bye");
}
const local = await port.listen();
done.local = await (await fetch(local.url)).text();
local.close();
const { newest } = await viv.call("listEvents", { limit: 1 });
const snapshot = box.snapshot();
for await (const event of viv.events({ after: newest, sandbox: box.id })) {
  done.event = event.type;
  break;
}
await snapshot;
const [url, token] = process.argv.slice(2);
const page = new Page({ url, token });
const same = await page.get(box.id);
done.page = (await same.run("cat", { stdin: "over TCP" })).stdout;
done.remote = (await (await new Vivarium({ url, token }).get(box.id)).run("echo node")).stdout;
await box.remove();
console.log(JSON.stringify(done));
viv.close();
page.close();
process.exit(0);
`,
  answer: {
    exec: ["typed", 0],
    terminal: "10 20",
    cancelled: "cancelled",
    large: 3_000_000,
    bytes: [0, 255],
    copied: "up",
    port: "POST / x",
    messages: ["hello"],
    local: "GET / ",
    event: "snapshot.created",
    page: "over TCP",
    remote: "node\n",
  },
};
