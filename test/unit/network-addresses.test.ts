import { describe, expect, test } from "vitest";
import { addressKind, isLoopback } from "../../src/rules/network/addresses.ts";

const PUBLIC = [
  "1.1.1.1",
  "8.8.8.8",
  "93.184.216.34",
  "172.15.255.255",
  "172.32.0.1",
  "100.63.255.255",
  "100.128.0.1",
  "198.17.0.1",
  "198.20.0.1",
  "223.255.255.255",
  "2606:4700::1111",
  "2a00:1450:4001::200e",
  "::ffff:8.8.8.8",
  "64:ff9b::8.8.8.8",
];

const PRIVATE = [
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.1",
  "10.255.255.255",
  "100.64.0.1",
  "100.127.255.255",
  "127.0.0.1",
  "127.255.255.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.1",
  "192.0.2.1",
  "192.88.99.1",
  "192.168.1.1",
  "198.18.0.1",
  "198.19.255.255",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::2",
  "::127.0.0.1",
  "::8.8.8.8",
  "::ffff:127.0.0.1",
  "::ffff:10.0.0.1",
  "::ffff:0:8.8.8.8",
  "64:ff9b::10.0.0.1",
  "64:ff9b:1::1",
  "100::1",
  "2001::1",
  "2001:0:4136:e378:8000:63bf:3fff:fdd2",
  "2001:10::1",
  "2001:db8::1",
  "2002:7f00:1::",
  "2002:808:808::1",
  "3fff::1",
  "5f00::1",
  "fc00::1",
  "fd12:3456::1",
  "fe80::1",
  "fec0::1",
  "ff02::1",
  "4000::1",
];

const METADATA = [
  "169.254.169.254",
  "169.254.170.2",
  "169.254.0.1",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd20:ce::254",
  "fe80::a9fe:a9fe",
  "::ffff:169.254.169.254",
  "::ffff:a9fe:a9fe",
  "::169.254.169.254",
  "64:ff9b::169.254.169.254",
  "2002:a9fe:a9fe::1",
  "2001:0:1:2:3:4:5601:5601",
];

describe("addresses", () => {
  test.each(PUBLIC)("%s is public", (address) => expect(addressKind(address)).toBe("public"));
  test.each(PRIVATE)("NW-05: %s is not public", (address) => expect(addressKind(address)).toBe("private"));
  test.each(METADATA)("NW-04: %s is a metadata service", (address) => expect(addressKind(address)).toBe("metadata"));

  test("what is no address, or has a zone, is not public", () => {
    for (const text of ["", "example.com", "2606:4700::1111%eth0", "1.1.1", "1.1.1.1.1"]) expect(addressKind(text), text).toBe("private");
  });

  test("loopback is known however it is written", () => {
    for (const text of ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"]) expect(isLoopback(text), text).toBe(true);
    for (const text of ["10.0.0.1", "::ffff:8.8.8.8", "2606:4700::1"]) expect(isLoopback(text), text).toBe(false);
  });

  test("every address of the special ranges is closed, and their neighbours are open", () => {
    const ranges: [string, number][] = [
      ["10.0.0.0", 8],
      ["172.16.0.0", 12],
      ["192.168.0.0", 16],
      ["198.18.0.0", 15],
      ["224.0.0.0", 3],
    ];
    for (const [first, bits] of ranges) {
      const start = toNumber(first);
      const last = start + 2 ** (32 - bits) - 1;
      for (const number of [start, start + 1, Math.floor((start + last) / 2), last]) expect(addressKind(toText(number))).not.toBe("public");
      expect(addressKind(toText(start - 1)), toText(start - 1)).toBe("public");
    }
  });
});

function toNumber(address: string): number {
  return address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}

function toText(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join(".");
}
