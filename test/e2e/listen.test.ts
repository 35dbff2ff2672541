/** `viv up --listen` as a person types it: what it refuses, what it opens, and that a browser gets in by the link. */
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

describe("viv up --listen (API-3)", needs("root"), () => {
  let server: TestServer;
  let port: number;

  beforeAll(async () => {
    server = await TestServer.start();
    port = await freePort();
    await server.down();
  });
  afterAll(async () => {
    viv(server, ["down"]);
    await server.remove();
  });

  const ask = async (path: string, options: { method?: string; headers?: Record<string, string>; body?: string }) => {
    const ca = readFileSync(join(server.paths.home, "tls-cert"));
    const sent = request({ host: "127.0.0.1", port, path, ca, servername: "localhost", ...options });
    const answered = new Promise<{ status: number; cookie: string; body: string }>((resolve, reject) => {
      sent.once("error", reject);
      sent.once("response", (response) => {
        const cookie = (response.headers["set-cookie"] ?? [""])[0]?.split(";")[0] ?? "";
        void text(response).then((body) => resolve({ status: response.statusCode ?? 0, cookie, body }));
      });
    });
    sent.end(options.body ?? "");
    return answered;
  };

  test("refuses an address that other computers reach without TLS, and says what to do", () => {
    const refused = viv(server, ["up", "--listen", `0.0.0.0:${port}`]);
    expect(refused.code).not.toBe(0);
    expect(refused.err).toMatch(/without TLS/);
    expect(refused.err).toMatch(/--self-signed/);
    expect(viv(server, ["status", "--json"]).out).not.toContain(`0.0.0.0:${port}`);
  });

  test("opens it with a certificate that it makes, says what it opens, and a link leads there", async () => {
    viv(server, ["down"]);
    const up = viv(server, ["up", "--listen", `0.0.0.0:${port}`, "--self-signed"]);
    expect(up).toMatchObject({ code: 0 });
    expect(up.out).toContain(`every computer that reaches 0.0.0.0:${port}`);
    expect(up.out).toMatch(/(?:[\dA-F]{2}:){31}[\dA-F]{2} \(SHA-256\); compare it/);
    const { url } = JSON.parse(viv(server, ["open", "--json", "/work"]).out) as { url: string };
    const link = new URL(url);
    expect([link.protocol, link.port, link.pathname]).toEqual(["https:", String(port), "/work"]);
    const own = { host: link.host, origin: link.origin };
    const body = JSON.stringify({ link: link.hash.replace("#login=", "") });
    const login = await ask("/dashboard/login", { method: "POST", headers: { ...own, "content-type": "application/json" }, body });
    expect(login.status).toBe(200);
    const { key } = JSON.parse(login.body) as { key: string };
    const entered = await ask("/status", { headers: { ...own, cookie: login.cookie, "viv-key": key } });
    expect(entered.status).toBe(200);
    expect(JSON.parse(entered.body)).toMatchObject({ access: { tls: "self-signed", from: "every network" } });
    expect((await ask("/status", { headers: own })).status).toBe(401);
    expect((await ask("/status", { headers: { ...own, host: `evil.example:${port}`, cookie: login.cookie, "viv-key": key } })).status).toBe(
      403,
    );
  });

  test("BOX-6: shows ports at names of their own where it was given some, and says what to do where not", async () => {
    const box = await server.create({ name: "shown" });
    const refused = viv(server, ["port", box.name, "3000", "--open"]);
    expect(refused.code).not.toBe(0);
    expect(refused.err).toMatch(/needs a name of its own.*--previews https:\/\/\*\.NAME/s);
    viv(server, ["down"]);
    const previews = "https://*.preview.example.com";
    const up = viv(server, ["up", "--listen", `0.0.0.0:${port}`, "--self-signed", "--previews", previews]);
    expect(up).toMatchObject({ code: 0 });
    expect(up.out).toContain(`previews show at ${previews}:${port}`);
    const { url } = JSON.parse(viv(server, ["port", box.name, "3000", "--open", "--json"]).out) as { url: string };
    const link = new URL(url);
    expect(link.origin).toBe(`https://3000-${box.id}.preview.example.com:${port}`);
    const body = JSON.stringify({ ticket: link.hash.slice(1) });
    const own = { host: link.host, origin: link.origin };
    const entered = await ask("/.viv/enter", { method: "POST", headers: { ...own, "content-type": "application/json" }, body });
    expect(entered).toMatchObject({ status: 200, cookie: expect.stringMatching(/^__Host-viv-preview=/) as string });
    // It is in, and the program is not there yet.
    expect((await ask("/", { headers: { host: link.host, cookie: entered.cookie, accept: "text/html" } })).body).toContain(
      "Nothing listens on port 3000",
    );
    viv(server, ["down"]);
    expect(viv(server, ["up", "--listen", `0.0.0.0:${port}`, "--self-signed"])).toMatchObject({ code: 0 });
  });

  test("leaves a server that runs as it is, and says so", () => {
    expect(viv(server, ["up", "--listen", `0.0.0.0:${port}`, "--self-signed"]).code).toBe(0);
    const other = viv(server, ["up", "--listen", "127.0.0.1:1"]);
    expect(other.code).not.toBe(0);
    expect(other.err).toContain("A server already runs");
  });
});
