/** What leaves for a push service: by the examples of RFC 8291, and as a browser reads it. */
import { createECDH } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { encryptPush, MOST_PUSH_BYTES, parsePushKeys } from "../../src/work/notifications/push/encryption.ts";
import { ServerKey } from "../../src/work/notifications/push/server-key.ts";
import { claimsOf, PushReceiver } from "../support/push-service.ts";

/** RFC 8291, section 5 and appendix A. */
const RFC = {
  text: "When I grow up, I want to be a watermelon",
  senderPrivate: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw",
  receiverPublic: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  receiverPrivate: "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
  salt: "DGv6ra1nlYgDCS1FRnbzlw",
  body: "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN",
};

describe("a push message (WEB-2)", () => {
  test("is encrypted byte for byte as in the example of RFC 8291", () => {
    const key = createECDH("prime256v1");
    key.setPrivateKey(Buffer.from(RFC.senderPrivate, "base64url"));
    const keys = { p256dh: RFC.receiverPublic, auth: RFC.auth };
    const sealed = encryptPush(Buffer.from(RFC.text), keys, { salt: Buffer.from(RFC.salt, "base64url"), key });
    expect(sealed.toString("base64url")).toBe(RFC.body);
  });

  test("is read by the receiver of that example, and by no other", () => {
    const receiver = new PushReceiver({ privateKey: RFC.receiverPrivate, auth: RFC.auth });
    expect(receiver.decrypt(Buffer.from(RFC.body, "base64url"))).toBe(RFC.text);
    expect(() => new PushReceiver().decrypt(Buffer.from(RFC.body, "base64url"))).toThrow();
  });

  test("has fresh keys each time, and holds 3,993 bytes in one record of 4096", () => {
    const receiver = new PushReceiver();
    const text = Buffer.alloc(MOST_PUSH_BYTES, "ä");
    const [one, other] = [encryptPush(text, receiver.keys), encryptPush(text, receiver.keys)];
    expect(one.equals(other)).toBe(false);
    expect(one.length).toBe(4096);
    expect(receiver.decrypt(one)).toBe(text.toString());
    expect(() => encryptPush(Buffer.alloc(MOST_PUSH_BYTES + 1), receiver.keys)).toThrow(/3993 bytes/);
  });

  test.each([
    ["a point that is not on the curve", { p256dh: Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 7)]).toString("base64url") }],
    ["a short point", { p256dh: "BAAA" }],
    ["a short secret", { auth: "AAAA" }],
  ])("is not made for %s", (_, change) => {
    expect(() => parsePushKeys({ ...new PushReceiver().keys, ...change })).toThrow(/keys/);
    expect(parsePushKeys(new PushReceiver().keys).auth.length).toBe(16);
  });
});

describe("the server's key for push services (RFC 8292)", () => {
  const folder = mkdtempSync(join(tmpdir(), "viv-push-"));
  const path = join(folder, "push-key");
  afterAll(() => rmSync(folder, { recursive: true }));

  test("is made once, readable by its owner alone, and stays the same for the next server", () => {
    const first = new ServerKey(path).publicKey;
    expect(Buffer.from(first, "base64url").length).toBe(65);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(new ServerKey(path).publicKey).toBe(first);
    expect(readFileSync(path, "utf8")).toContain("PRIVATE KEY");
  });

  test("signs for one push service, for hours", () => {
    const key = new ServerKey(path);
    const now = Date.now();
    const made = claimsOf(key.authorization(new URL("https://push.example.com/send/abc"), "mailto:one@example.com", now));
    expect(made.key).toBe(key.publicKey);
    expect(made.claims).toEqual({
      aud: "https://push.example.com",
      exp: Math.floor(now / 1000) + 12 * 3600,
      sub: "mailto:one@example.com",
    });
  });
});
