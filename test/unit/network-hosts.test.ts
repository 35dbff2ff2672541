import { describe, expect, test } from "vitest";
import { parseAuthority, parseHost } from "../../src/rules/network/host.ts";
import { portNumber } from "../../src/base/schema/numbers.ts";
import { Randomness } from "../support/randomness.ts";

describe("hosts as a client names them", () => {
  test.each([
    ["example.com", "example.com"],
    ["EXAMPLE.Com", "example.com"],
    ["a-b.example.com", "a-b.example.com"],
    ["_dmarc.example.com", "_dmarc.example.com"],
    ["xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["localhost", "localhost"],
    ["93.184.216.34", "93.184.216.34"],
    ["[2606:4700::1111]", "2606:4700::1111"],
    ["[2606:4700:0:0:0:0:0:1111]", "2606:4700::1111"],
    ["[::ffff:127.0.0.1]", "::ffff:7f00:1"],
  ])("%s is %s", (text, host) => expect(parseHost(text)).toBe(host));

  test.each([
    ["a NUL", "localhost\0.example.com"],
    ["a NUL at the end", "example.com\0"],
    ["an escape", "example%2ecom"],
    ["a zone", "[fe80::1%eth0]"],
    ["a zone without brackets", "fe80::1%eth0"],
    ["a login", "user@example.com"],
    ["a backslash", "example.com\\evil"],
    ["a line break", "example.com\r\nHost: evil"],
    ["a line feed", "example.com\n"],
    ["a space", "example .com"],
    ["a tab", "example.com\t"],
    ["a trailing dot", "example.com."],
    ["two dots", "example..com"],
    ["a leading dot", ".example.com"],
    ["a slash", "example.com/"],
    ["a hash", "example.com#"],
    ["300 characters", `${"a".repeat(60)}.`.repeat(5) + "com"],
    ["a label of 64 characters", `${"a".repeat(64)}.com`],
    ["a hyphen at the end of a label", "a-.example.com"],
    ["letters beyond ASCII", "bücher.example"],
    ["full-width letters", "ｅxample.com"],
    ["full-width digits", "１27.0.0.1"],
    ["an ideographic full stop", "example。com"],
    ["a soft hyphen", "exam\u00adple.com"],
    ["an upside-down override", "\u202eexample.com"],
    ["a short address", "127.1"],
    ["a hexadecimal address", "0x7f000001"],
    ["an octal address", "0177.0.0.1"],
    ["an address as a number", "2130706433"],
    ["an address with a leading zero", "127.0.0.01"],
    ["too large an address", "256.1.1.1"],
    ["an IPv6 address without brackets", "::1"],
    ["half a bracket", "[::1"],
    ["nothing", ""],
  ])("PX-02: a host with %s is none", (_, text) => expect(parseHost(text)).toBeUndefined());

  test("PX-02: a host is one where the parser of URLs takes it for the same, whatever it is made of", () => {
    const random = new Randomness(Number(process.env["VIV_FUZZ_SEED"] ?? 7));
    const pieces = [
      "a",
      "x",
      "0",
      "1",
      "9",
      "0x",
      "xn--",
      "xn--bcher-kva",
      "f",
      "-",
      "--",
      "_",
      ".",
      ".",
      ".",
      "127",
      "256",
      "com",
      "ß",
      "K",
    ];
    let taken = 0;
    for (let turn = 0; turn < 200_000; turn += 1) {
      const text = Array.from({ length: 1 + random.below(8) }, () => random.of(pieces)).join("");
      const host = parseHost(text);
      if (host === undefined) continue;
      taken += 1;
      expect([URL.parse(`http://${text}/`)?.hostname, host], text).toEqual([host, host]);
    }
    expect(taken).toBeGreaterThan(10_000);
  });

  test.each(["80", "443", "1", "65535"])("port %s is one", (text) => expect(portNumber(text)).toBe(Number(text)));
  test.each(["0", "080", "+80", "80.0", "8e1", " 80", "80 ", "-80", "65536", "0x50", "８０", "٨٠", "", "99999999999"])(
    "port %j is none",
    (text) => expect(portNumber(text)).toBeUndefined(),
  );

  test("host and port are taken apart at the one place they can be", () => {
    expect(parseAuthority("example.com:8080")).toEqual({ host: "example.com", port: 8080 });
    expect(parseAuthority("[::1]:80")).toEqual({ host: "::1", port: 80 });
    expect(parseAuthority("example.com", 80)).toEqual({ host: "example.com", port: 80 });
    for (const text of ["example.com", "example.com:", "a:b:80", "::1:80", "example.com:80:80", "user:pass@example.com:80", "[::1]x:80"])
      expect(parseAuthority(text), text).toBeUndefined();
  });
});
