/** Which addresses are the public internet. The user has to open every other address; metadata services are never opened. */
import { BlockList, isIPv4, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";

export type AddressKind = "public" | "private" | "metadata";

/** Services that hand out credentials of the machine; some stand at public addresses. */
const METADATA = list(
  ["169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"],
  ["fd00:ec2::/32", "fd20:ce::/32", "fe80::a9fe:0/112"],
);

/** Special-purpose ranges of the IANA registries, and what routers of a company use. */
const CLOSED = list(
  [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
  ],
  // Teredo and 6to4 hide an IPv4 address and an unknown relay.
  ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"],
);
const GLOBAL = list([], ["2000::/3"]);

/** Each connection asks several times, and Node takes long to look into its lists. */
const MOST_KNOWN = 1024;
const known = new Map<string, AddressKind>();

/** The kind of an address, in any notation that `node:net` knows, without a zone. */
export function addressKind(address: string): AddressKind {
  const found = known.get(address);
  if (found !== undefined) return found;
  if (known.size >= MOST_KNOWN) known.clear();
  const kind = kindOf(address);
  known.set(address, kind);
  return kind;
}

function kindOf(address: string): AddressKind {
  if (isIPv4(address)) return fourKind(address);
  if (!isIPv6(address) || address.includes("%")) return "private";
  const embedded = embeddedFour(groups(address));
  if (embedded !== undefined) return sixAround(embedded);
  if (METADATA.check(address, "ipv6")) return "metadata";
  return GLOBAL.check(address, "ipv6") && !CLOSED.check(address, "ipv6") ? "public" : "private";
}

/** With the machine's own addresses: what listens there is no more public than what listens on loopback. */
export function kindHere(address: string, own: () => readonly string[]): AddressKind {
  const kind = addressKind(address);
  return kind === "public" && own().includes(plainAddress(address)) ? "private" : kind;
}

export function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []);
}

/** Whether it is this machine's own loopback, however it is written. */
export function isLoopback(address: string): boolean {
  const four = isIPv4(address) ? address : embeddedFour(isIPv6(address) ? groups(address) : [])?.address;
  if (four !== undefined) return four.startsWith("127.") || four === "0.0.0.0";
  return (
    isIPv6(address) &&
    groups(address)
      .slice(0, 7)
      .every((group) => group === 0)
  );
}

/** The address that answers in the end: of an IPv4 one within IPv6, that. */
export function plainAddress(address: string): string {
  return (isIPv6(address) && !address.includes("%") ? embeddedFour(groups(address))?.address : undefined) ?? address;
}

function fourKind(address: string): AddressKind {
  if (METADATA.check(address, "ipv4")) return "metadata";
  return CLOSED.check(address, "ipv4") ? "private" : "public";
}

interface Embedded {
  readonly address: string;
  /** False for transition techniques that lead nowhere good by themselves. */
  readonly trusted: boolean;
}

function sixAround({ address, trusted }: Embedded): AddressKind {
  const kind = fourKind(address);
  return kind === "public" && !trusted ? "private" : kind;
}

/** The IPv4 address that an IPv6 one leads to: mapped, compatible, NAT64, 6to4, Teredo. */
function embeddedFour(parts: readonly number[]): Embedded | undefined {
  const [a = 0, b = 0, c = 0] = parts;
  const zero = (from: number, to: number): boolean => parts.slice(from, to).every((group) => group === 0);
  const at = (index: number, flip = 0): string => dotted((parts[index] ?? 0) ^ flip, (parts[index + 1] ?? 0) ^ flip);
  if (zero(0, 5) && parts[5] === 0xffff) return { address: at(6), trusted: true };
  if (zero(0, 4) && parts[4] === 0xffff && parts[5] === 0) return { address: at(6), trusted: false };
  if (zero(0, 6) && !(parts[6] === 0 && (parts[7] ?? 0) <= 1)) return { address: at(6), trusted: false };
  if (a === 0x64 && b === 0xff9b) return { address: at(6), trusted: zero(2, 6) };
  if (a === 0x2002) return { address: dotted(b, c), trusted: false };
  if (a === 0x2001 && b === 0) return { address: at(6, 0xffff), trusted: false };
  return undefined;
}

function dotted(high: number, low: number): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

/** The eight groups of an IPv6 address. */
function groups(address: string): number[] {
  const four = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  const hex = (high: number, low: number): string => ((high << 8) | low).toString(16);
  const text = four === null ? address : `${four[1]}${hex(Number(four[2]), Number(four[3]))}:${hex(Number(four[4]), Number(four[5]))}`;
  const [head = "", tail] = text.split("::");
  const numbers = (part: string): number[] => (part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16)));
  const before = numbers(head);
  const after = tail === undefined ? [] : numbers(tail);
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
}

function list(four: readonly string[], six: readonly string[]): BlockList {
  const made = new BlockList();
  for (const [ranges, family] of [
    [four, "ipv4"],
    [six, "ipv6"],
  ] as const)
    for (const range of ranges) {
      const [address = "", bits = ""] = range.split("/");
      made.addSubnet(address, Number(bits), family);
    }
  return made;
}
