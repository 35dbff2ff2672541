/** Ways to a person: each with a real receiver at its other end. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ChannelConfig, type ChannelConfigOf } from "../../src/base/schema/notification.ts";
import { VivError } from "../../src/base/schema/errors.ts";
import { isBound } from "../../src/rules/secrets/secrets.ts";
import { CommandChannel } from "../../src/work/notifications/channels/command.ts";
import { DesktopChannel } from "../../src/work/notifications/channels/desktop.ts";
import { EmailChannel } from "../../src/work/notifications/channels/email.ts";
import { WebPushChannel } from "../../src/work/notifications/channels/web-push.ts";
import { WebhookChannel } from "../../src/work/notifications/channels/webhook.ts";
import { PushEndpoints } from "../../src/work/notifications/push/endpoint.ts";
import { ServerKey } from "../../src/work/notifications/push/server-key.ts";
import { certificate } from "../support/certificates.ts";
import { aMessage, channelContract } from "../support/channel-contract.ts";
import { claimsOf, PushReceiver, RequestCatcher, type ReceivedRequest } from "../support/push-service.ts";
import { SmtpServer } from "../support/smtp-server.ts";

const SECRET = "a secret that signs";
const PASSWORD = "a password of this test";
const folder = mkdtempSync(join(tmpdir(), "viv-channels-"));
const used: string[] = [];
/** Keeps secrets as the server does: bound to hosts with their ports. */
const secretsFor = (value: string, hosts: string[]) => ({
  valueFor: (name: string, to: Parameters<typeof isBound>[1]): string => {
    if (isBound({ hosts, methods: [], path: null, header: null }, to)) return value;
    throw new VivError("denied", `The secret ${name} is not bound to ${to.host}.`);
  },
  recordOwnUse: async (_to: unknown, name: string): Promise<void> => void used.push(name),
});
let catcher: RequestCatcher;
let smtp: SmtpServer;
const refusals: string[] = [];
const receiver = new PushReceiver();
let certFile: string;

beforeAll(async () => {
  catcher = await RequestCatcher.start();
  const { key, cert, file } = certificate(folder, "localhost", "127.0.0.1");
  certFile = file;
  smtp = await SmtpServer.start({ key, cert, user: "viv", password: PASSWORD, refusals });
});

afterAll(async () => {
  await catcher.close();
  await smtp.close();
  rmSync(folder, { recursive: true });
});

afterEach(() => {
  catcher.answers.length = 0;
  refusals.length = 0;
});

function last(): ReceivedRequest {
  const found = catcher.received.at(-1);
  if (found === undefined) throw new Error("no request came");
  return found;
}

function configOf<Type extends ChannelConfig["type"]>(config: { readonly type: Type } & Record<string, unknown>): ChannelConfigOf<Type> {
  return ChannelConfig.parse(config) as ChannelConfigOf<Type>;
}

const webhook = (change: Record<string, unknown> = {}): WebhookChannel =>
  new WebhookChannel(
    configOf({ type: "webhook", url: `${catcher.origin}/hook`, secret: "HOOK", ...change }),
    secretsFor(SECRET, [`127.0.0.1:${catcher.port}`]),
  );

channelContract("webhook", {
  channel: webhook,
  seen: async () => {
    const { body, headers } = last();
    return { ...(JSON.parse(body.toString()) as { title: string; text: string }), id: String(headers["webhook-id"]) };
  },
  refuse: () => catcher.answers.push({ status: 503 }),
});

describe("a webhook (WEB-2)", () => {
  /** The receiver's side, as docs/NOTIFICATIONS.md shows it to people. */
  const snippet = async (): Promise<(headers: Record<string, unknown>, body: Buffer, secret: string) => boolean> => {
    const page = readFileSync(join(import.meta.dirname, "../../docs/NOTIFICATIONS.md"), "utf8");
    const code = /```js\n(\/\/ verify[^]*?)```/.exec(page)?.[1] ?? "";
    const file = join(folder, "verify.mjs");
    writeFileSync(file, code);
    return ((await import(file)) as { verify: (headers: Record<string, unknown>, body: Buffer, secret: string) => boolean }).verify;
  };

  test("is signed so that the lines of docs/NOTIFICATIONS.md accept it, and nothing that was changed", async () => {
    const verify = await snippet();
    await webhook().send(aMessage(), AbortSignal.timeout(10_000));
    const { headers, body } = last();
    expect(verify(headers, body, SECRET)).toBe(true);
    expect(verify(headers, Buffer.concat([body, Buffer.from(" ")]), SECRET)).toBe(false);
    expect(verify({ ...headers, "webhook-id": "another" }, body, SECRET)).toBe(false);
    expect(verify(headers, body, "another secret")).toBe(false);
    const old = String(Number(headers["webhook-timestamp"]) - 3600);
    expect(verify({ ...headers, "webhook-timestamp": old }, body, SECRET)).toBe(false);
    expect(verify({ ...headers, "webhook-signature": undefined }, body, SECRET)).toBe(false);
  });

  test("takes the keys of Standard Webhooks, too", async () => {
    const verify = await snippet();
    const key = `whsec_${Buffer.from("bytes of a key").toString("base64")}`;
    const config = configOf({ type: "webhook", url: `${catcher.origin}/hook`, secret: "HOOK" });
    await new WebhookChannel(config, secretsFor(key, [`127.0.0.1:${catcher.port}`])).send(aMessage(), AbortSignal.timeout(10_000));
    const { headers, body } = last();
    expect(verify(headers, body, key)).toBe(true);
  });

  test("is not sent where its secret is bound to another place", async () => {
    const before = catcher.received.length;
    const bound = new WebhookChannel(
      configOf({ type: "webhook", url: catcher.origin, secret: "HOOK" }),
      secretsFor(SECRET, ["example.com"]),
    );
    await expect(bound.send(aMessage(), AbortSignal.timeout(10_000))).rejects.toMatchObject({ code: "denied" });
    expect(catcher.received.length).toBe(before);
  });

  test("follows no redirect, and tells it as a refusal for good", async () => {
    const before = catcher.received.length;
    catcher.answers.push({ status: 302, headers: { location: `${catcher.origin}/elsewhere` } });
    expect(await webhook().send(aMessage(), AbortSignal.timeout(10_000))).toMatchObject({ sent: false, again: false });
    expect(catcher.received.slice(before).map(({ path }) => path)).toEqual(["/hook"]);
  });

  test("waits as long as its receiver asks for, within bounds", async () => {
    catcher.answers.push({ status: 429, headers: { "retry-after": "120" } }, { status: 503, headers: { "retry-after": "99999999" } });
    expect(await webhook().send(aMessage(), AbortSignal.timeout(10_000))).toMatchObject({ again: true, afterMs: 120_000 });
    expect(await webhook().send(aMessage(), AbortSignal.timeout(10_000))).toMatchObject({ again: true, afterMs: 6 * 3_600_000 });
  });

  test("ends with its time where the receiver takes the connection and says nothing", async () => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => void silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as { port: number };
    const channel = webhook({ url: `http://127.0.0.1:${port}/`, secret: undefined });
    expect(await channel.send(aMessage(), AbortSignal.timeout(300))).toMatchObject({
      sent: false,
      again: true,
      reason: expect.stringContaining("too long"),
    });
    silent.close();
  });
});

const commandFile = join(folder, "received.json");
const command = (words: readonly string[]): CommandChannel =>
  new CommandChannel(configOf({ type: "command", command: words, timeout: "2s" }), { PATH: process.env["PATH"] ?? "" });

channelContract("command", {
  channel: () => command(["tee", commandFile]),
  seen: async () => JSON.parse(readFileSync(commandFile, "utf8")) as { title: string; text: string; id: string },
});

describe("a command", () => {
  test("gets its words as they are, without a shell", async () => {
    const script = join(folder, "words");
    writeFileSync(script, `#!/bin/sh\nprintf '%s|' "$@" > ${folder}/words.txt\n`);
    chmodSync(script, 0o755);
    expect(await command([script, "$HOME; echo x", "*", "two words"]).send(aMessage(), AbortSignal.timeout(10_000))).toEqual({
      sent: true,
    });
    expect(readFileSync(join(folder, "words.txt"), "utf8")).toBe("$HOME; echo x|*|two words|");
  });

  test("is tried again where it fails or hangs, and not where there is none", async () => {
    const send = (words: string[]) => command(words).send(aMessage(), AbortSignal.timeout(10_000));
    expect(await send(["false"])).toMatchObject({ sent: false, again: true, reason: "false ended with 1." });
    expect(await send(["sleep", "60"])).toMatchObject({ sent: false, again: true, reason: expect.stringContaining("ran out of time") });
    expect(await send(["/no/such/program"])).toMatchObject({ sent: false, again: false });
  });
});

const email = (change: Record<string, unknown> = {}, password = PASSWORD): EmailChannel =>
  new EmailChannel(
    configOf({
      type: "email",
      host: "localhost",
      port: smtp.port,
      user: "viv",
      secret: "SMTP",
      ca: certFile,
      from: "viv@example.com",
      to: ["me@example.com"],
      ...change,
    }),
    secretsFor(password, [`localhost:${smtp.port}`]),
  );

/** A mail's header, as mail programs decode it (RFC 2047). */
function headerOf(data: string, name: string): string {
  const unfolded = (data.split("\r\n\r\n")[0] ?? "").replaceAll(/\r\n[ \t]/g, " ");
  const value = new RegExp(`^${name}: (.*)$`, "im").exec(unfolded)?.[1] ?? "";
  return value
    .replaceAll(/\?=\s+=\?/g, "?==?")
    .replaceAll(/=\?utf-8\?([bq])\?([^?]*)\?=/gi, (_, how: string, text: string) =>
      how.toLowerCase() === "b" ? Buffer.from(text, "base64").toString("latin1") : unquoted(text.replaceAll("_", " ")),
    )
    .replaceAll(/[\u0080-\u00ff]+/g, (bytes) => Buffer.from(bytes, "latin1").toString("utf8"));
}

function unquoted(text: string): string {
  return text.replaceAll(/=\r\n/g, "").replaceAll(/=([\dA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function bodyOf(data: string): string {
  const body = data.slice(data.indexOf("\r\n\r\n") + 4);
  const coding = headerOf(data, "content-transfer-encoding");
  const bytes =
    coding === "base64" ? Buffer.from(body, "base64").toString("latin1") : coding === "quoted-printable" ? unquoted(body) : body;
  return Buffer.from(bytes, "latin1").toString("utf8");
}

channelContract("email", {
  channel: email,
  seen: async () => {
    const { data } = smtp.mails.at(-1) ?? { data: "" };
    return { title: headerOf(data, "subject"), text: bodyOf(data).split(/\r?\n/)[0] ?? "", id: headerOf(data, "message-id") };
  },
  refuse: () => refusals.push("451 4.3.0 not now"),
});

describe("a mail", () => {
  test("goes by TLS after a login with the sealed password, whose use is recorded", async () => {
    used.length = 0;
    await email().send(aMessage(), AbortSignal.timeout(10_000));
    expect(smtp.mails.at(-1)).toMatchObject({ from: "viv@example.com", to: ["me@example.com"], user: "viv", isTls: true });
    expect(bodyOf(smtp.mails.at(-1)?.data ?? "")).toContain("http://127.0.0.1:7411/question/apv1");
    expect(used).toEqual(["SMTP"]);
  });

  test("AP-32: carries no header that a text brought along", async () => {
    await email().send(aMessage({ title: "x\r\nBcc: evil@example.com\r\n\r\nbody" }), AbortSignal.timeout(10_000));
    const { data, to } = smtp.mails.at(-1) ?? { data: "", to: [] };
    expect(to).toEqual(["me@example.com"]);
    expect(data).not.toMatch(/^bcc:/im);
    expect(headerOf(data, "from")).toContain("viv@example.com");
  });

  test("gives neither password nor mail to a server that offers no TLS, or whose certificate nothing vouches for", async () => {
    const { key, cert } = certificate(folder, "other.example");
    const plain = await SmtpServer.start({ key, cert, user: "viv", password: PASSWORD, hidesTls: true });
    const send = (change: Record<string, unknown>, port: number) =>
      new EmailChannel(
        configOf({
          type: "email",
          host: "localhost",
          port,
          user: "viv",
          secret: "SMTP",
          from: "viv@example.com",
          to: ["me@example.com"],
          ...change,
        }),
        secretsFor(PASSWORD, [`localhost:${port}`]),
      ).send(aMessage(), AbortSignal.timeout(10_000));
    expect(await send({ ca: certFile }, plain.port)).toMatchObject({ sent: false });
    expect(plain.lines.some((line) => /^(AUTH|MAIL)/i.test(line))).toBe(false);
    const before = smtp.mails.length;
    expect(await send({ ca: undefined }, smtp.port)).toMatchObject({ sent: false });
    expect(smtp.mails.length).toBe(before);
    await plain.close();
  });

  test("is not tried again after a wrong password, so that no account is locked", async () => {
    expect(await email({}, "wrong").send(aMessage(), AbortSignal.timeout(10_000))).toMatchObject({ sent: false, again: false });
  });

  test("goes without TLS to this machine alone", () => {
    const config = { type: "email", security: "none", from: "a@example.com", to: ["b@example.com"] };
    expect(ChannelConfig.safeParse({ ...config, host: "mail.example.com" }).success).toBe(false);
    expect(ChannelConfig.safeParse({ ...config, host: "localhost" }).success).toBe(true);
  });
});

describe("the desktop", () => {
  const desktop = new DesktopChannel({ PATH: folder });
  const shown = join(folder, "shown.json");

  beforeAll(() => {
    writeFileSync(
      join(folder, "notify-send"),
      `#!${process.execPath}\nrequire("node:fs").writeFileSync(${JSON.stringify(shown)}, JSON.stringify(process.argv.slice(2)));\n`,
    );
    chmodSync(join(folder, "notify-send"), 0o755);
  });

  test("shows a notification by notify-send, whose text is no option and no markup", async () => {
    expect(await desktop.send(aMessage({ title: "--help", text: "<b>bold</b> & more" }), AbortSignal.timeout(10_000))).toEqual({
      sent: true,
    });
    const words = JSON.parse(readFileSync(shown, "utf8")) as string[];
    expect(words.slice(words.indexOf("--"))).toEqual([
      "--",
      "--help",
      "&lt;b&gt;bold&lt;/b&gt; &amp; more\nhttp://127.0.0.1:7411/question/apv1",
    ]);
  });

  test("says what to install where there is no notify-send", async () => {
    const outcome = await new DesktopChannel({ PATH: join(folder, "none") }).send(aMessage(), AbortSignal.timeout(10_000));
    expect(outcome).toMatchObject({ sent: false, again: false, reason: expect.stringContaining("libnotify-bin") });
  });
});

const serverKey = new ServerKey(join(folder, "push-key"));
const push = (
  endpoint = `${catcher.origin}/push/one`,
  named = [catcher.origin],
  resolve = async (): Promise<string[]> => [],
): WebPushChannel =>
  new WebPushChannel({ endpoint, keys: receiver.keys }, serverKey, new PushEndpoints(() => named, resolve), () => "mailto:me@example.com");

channelContract("push", {
  channel: push,
  seen: async () => {
    const { body, headers } = last();
    return { ...(JSON.parse(receiver.decrypt(body)) as { title: string; text: string }), id: String(headers["topic"]) };
  },
  refuse: () => catcher.answers.push({ status: 500 }),
});

describe("a push message (WEB-2)", () => {
  test("is sealed for the browser, signed for its push service, and says how long and how urgently", async () => {
    await push().send(aMessage(), AbortSignal.timeout(10_000));
    const { headers, body, path } = last();
    expect(path).toBe("/push/one");
    expect(headers).toMatchObject({ "content-encoding": "aes128gcm", ttl: "3600", urgency: "high" });
    const { key, claims } = claimsOf(headers.authorization ?? "");
    expect(key).toBe(serverKey.publicKey);
    expect(claims).toMatchObject({ aud: catcher.origin, sub: "mailto:me@example.com" });
    expect(body.includes("mend the tests")).toBe(false);
    expect(JSON.parse(receiver.decrypt(body))).toMatchObject({ kind: "question", link: "/question/apv1" });
  });

  test("tells that a browser is gone for good", async () => {
    catcher.answers.push({ status: 410 });
    expect(await push().send(aMessage(), AbortSignal.timeout(10_000))).toMatchObject({ sent: false, again: false, gone: true });
  });

  test.each([
    ["plain HTTP", "http://push.example.com/x", ["93.184.216.34"]],
    ["another port", "https://push.example.com:8443/x", ["93.184.216.34"]],
    ["a login in the address", "https://user:word@push.example.com/x", ["93.184.216.34"]],
    ["this machine", "https://push.example.com/x", ["127.0.0.1"]],
    ["this machine by its address", "https://127.0.0.1/x", []],
    ["this machine in another notation", "https://0x7f.1/x", []],
    ["this machine by IPv6", "https://[::ffff:127.0.0.1]/x", []],
    ["the network of this machine", "https://push.example.com/x", ["10.0.0.7"]],
    ["one private address among public ones", "https://push.example.com/x", ["93.184.216.34", "192.168.0.1"]],
    ["the service that hands out credentials", "https://push.example.com/x", ["169.254.169.254"]],
  ])("AP-31: does not go to %s, which a page could have named", async (_, endpoint, addresses) => {
    const before = catcher.received.length;
    const outcome = await push(endpoint, [], async () => addresses).send(aMessage(), AbortSignal.timeout(10_000));
    expect(outcome).toMatchObject({ sent: false, again: false, reason: expect.stringContaining("push service") });
    expect(catcher.received.length).toBe(before);
  });

  test("would go to a public address, and dials the one that was checked", async () => {
    const endpoints = new PushEndpoints(
      () => [],
      async () => ["93.184.216.34"],
    );
    expect(await endpoints.address(new URL("https://push.example.com/x"))).toBe("93.184.216.34");
    expect(
      await new PushEndpoints(
        () => [catcher.origin],
        async () => [],
      ).address(new URL(`${catcher.origin}/x`)),
    ).toBeUndefined();
  });
});
