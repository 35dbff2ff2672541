/** Which hosts are not the public web, in every spelling that programs take for an address. */

export type HostClass = "public" | "loopback" | "private" | "metadata";

const METADATA_NAMES = new Set(["metadata.google.internal", "metadata", "instance-data", "metadata.azure.internal"]);

/** Names are judged as names; what they resolve to is the network's business. */
export function classifyHost(given: string): HostClass {
  const host = given.toLowerCase().replace(/\.$/, "");
  if (METADATA_NAMES.has(host)) return "metadata";
  if (host === "localhost" || host.endsWith(".localhost") || host === "localhost.localdomain" || host === "ip6-localhost")
    return "loopback";
  if (host.endsWith(".internal") || host.endsWith(".local") || host === "host.docker.internal") return "private";
  if (host.includes(":")) return classifyIpv6(host);
  const number = ipv4Number(host);
  return number === undefined ? "public" : classifyIpv4(number);
}

/** As inet_aton reads it: one to four numbers, decimal, octal or hexadecimal, the last one filling what is left. */
function ipv4Number(host: string): number | undefined {
  const parts = host.split(".");
  if (parts.length > 4) return undefined;
  const numbers = parts.map(partNumber);
  let result = 0;
  for (const [index, number] of numbers.entries()) {
    const bytes = index === numbers.length - 1 ? 5 - numbers.length : 1;
    if (number === undefined || number >= 256 ** bytes) return undefined;
    result = result * 256 ** bytes + number;
  }
  return result;
}

function partNumber(part: string): number | undefined {
  if (/^0x[0-9a-f]{0,12}$/.test(part)) return Number.parseInt(part.slice(2) || "0", 16);
  if (/^0[0-7]{0,15}$/.test(part)) return Number.parseInt(part, 8);
  return /^[1-9]\d{0,10}$/.test(part) ? Number(part) : undefined;
}

const RANGES: readonly (readonly [address: string, bits: number, kind: HostClass])[] = [
  ["169.254.169.254", 32, "metadata"],
  ["100.100.100.200", 32, "metadata"],
  ["127.0.0.0", 8, "loopback"],
  ["0.0.0.0", 8, "loopback"],
  ["10.0.0.0", 8, "private"],
  ["172.16.0.0", 12, "private"],
  ["192.168.0.0", 16, "private"],
  ["169.254.0.0", 16, "private"],
  ["100.64.0.0", 10, "private"],
  ["192.0.0.0", 24, "private"],
  ["198.18.0.0", 15, "private"],
  ["224.0.0.0", 3, "private"],
];

function classifyIpv4(number: number): HostClass {
  for (const [address, bits, kind] of RANGES) {
    const size = 2 ** (32 - bits);
    if (Math.floor(number / size) === Math.floor((ipv4Number(address) ?? 0) / size)) return kind;
  }
  return "public";
}

function classifyIpv6(given: string): HostClass {
  const groups = ipv6Groups(given.split("%")[0] ?? "");
  if (groups === undefined) return "private";
  const [first = 0] = groups;
  const low = (groups[6] ?? 0) * 65_536 + (groups[7] ?? 0);
  const leading = groups.slice(0, 5).every((group) => group === 0);
  if (leading && (groups[5] === 0xffff || groups[5] === 0)) return low <= 1 ? "loopback" : classifyIpv4(low);
  if (first === 0x64 && groups[1] === 0xff9b) return classifyIpv4(low);
  if (first === 0x2002) return classifyIpv4((groups[1] ?? 0) * 65_536 + (groups[2] ?? 0));
  if (given.startsWith("fd00:ec2:")) return "metadata";
  const isPublic = (first & 0xe000) === 0x2000;
  return isPublic ? "public" : "private";
}

/** Eight numbers, or undefined for what is no address. */
function ipv6Groups(text: string): number[] | undefined {
  const [head = "", tail, more] = text.split("::");
  if (more !== undefined) return undefined;
  const left = head === "" ? [] : sideGroups(head);
  const right = tail === undefined || tail === "" ? [] : sideGroups(tail);
  if (left === undefined || right === undefined) return undefined;
  const missing = 8 - left.length - right.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  return [...left, ...Array.from({ length: missing }, () => 0), ...right];
}

function sideGroups(side: string): number[] | undefined {
  const groups: number[] = [];
  const parts = side.split(":");
  if (parts.length > 8) return undefined;
  for (const [index, part] of parts.entries()) {
    const dotted = index === parts.length - 1 && part.includes(".") ? ipv4Number(part) : undefined;
    if (dotted !== undefined) groups.push(Math.floor(dotted / 65_536), dotted % 65_536);
    else if (/^[0-9a-f]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
}
