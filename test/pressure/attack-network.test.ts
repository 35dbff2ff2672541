/** NW of the threat list, as far as it holds without the proxy: a sandbox has a loopback of its own and nothing else. */
import { execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import { networkInterfaces } from "node:os";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** Tries a TCP connection and prints `connected` or the error's name. */
const DIAL = `const s=require("net").connect({host:process.argv[1],port:+process.argv[2],timeout:1500});
s.on("connect",()=>{console.log("connected");s.destroy()});s.on("timeout",()=>{console.log("silence");s.destroy()});s.on("error",(e)=>console.log(e.code))`;
const SEND = `const s=require("dgram").createSocket(process.argv[1].includes(":")?"udp6":"udp4");
s.on("error",(e)=>{console.log(e.code);s.close()});s.send("x",+process.argv[2],process.argv[1],(e)=>{console.log(e?e.code:"sent");s.close()})`;

const MARK = "viv-spoofed";
/** Sends frames that claim to come from others: an address, a DHCP server, a router, a VLAN, an answer to ARP. */
const SPOOF = `
import socket, struct, sys
def attempt(send):
    try: send()
    except OSError: pass
device = sys.argv[1]
def frame(kind, payload, source=bytes.fromhex("02deadbeef01")):
    def send():
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        raw.bind((device, 0))
        raw.send(b"\\xff" * 6 + source + kind + payload + b"${MARK} ")
    attempt(send)
def packet(source, target, protocol, payload):
    return struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0, socket.inet_aton(source), socket.inet_aton(target)) + payload
frame(b"\\x08\\x00", packet("10.0.0.1", "255.255.255.255", 17, b"${MARK} source address;"))
frame(b"\\x08\\x00", packet("192.0.2.53", "255.255.255.255", 17, struct.pack("!HHHH", 67, 68, 40, 0) + b"${MARK} DHCP;"))
frame(b"\\x86\\xdd", struct.pack("!IHBB", 6 << 28, 40, 58, 255) + socket.inet_pton(10, "fe80::1") + socket.inet_pton(10, "ff02::1") + bytes([134, 0, 0, 0]) + b"${MARK} router advertisement;")
frame(b"\\x81\\x00\\x00\\x05\\x08\\x00", b"${MARK} VLAN;")
frame(b"\\x08\\x06", b"${MARK} ARP;")
def headed():
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    raw.sendto(packet("10.0.0.1", "255.255.255.255", 17, b"${MARK} raw"), ("255.255.255.255", 0))
attempt(headed)
print("tried")`;
/** Sends to an address by every protocol there is, and prints what came of each try. */
const SEND_ALL = `
import socket, sys
host = sys.argv[1]
for name, kind, protocol in [("tcp", socket.SOCK_STREAM, 0), ("udp", socket.SOCK_DGRAM, 0), ("icmp", socket.SOCK_DGRAM, 1), ("raw icmp", socket.SOCK_RAW, 1), ("raw", socket.SOCK_RAW, 255), ("sctp", socket.SOCK_STREAM, 132), ("sctp packets", socket.SOCK_SEQPACKET, 132)]:
    try:
        one = socket.socket(socket.AF_INET, kind, protocol)
        one.settimeout(0.2)
        one.connect((host, 443))
        one.send(b"\\x08\\x00\\xf7\\xff\\x00\\x00\\x00\\x00${MARK}")
        print(name, "sent", flush=True)
    except TimeoutError: print(name, "sent", flush=True)
    except OSError as error: print(name, type(error).__name__, error.errno, flush=True)`;
/** Prints how many frames to an address are seen on any device within some seconds. */
const COUNT = `
import socket, sys, time
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
raw.settimeout(0.2)
print("ready", flush=True)
until, seen, target = time.time() + float(sys.argv[2]), 0, socket.inet_aton(sys.argv[1])
while time.time() < until:
    try: data, where = raw.recvfrom(65535)
    except TimeoutError: continue
    seen += data[12:14] == b"\\x08\\x00" and data[30:34] == target
print(seen)`;
/** Prints what of it is seen on any device within some seconds, but for the sender's own. */
const SNIFF = `
import re, socket, sys, time
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
raw.settimeout(0.2)
print("ready", flush=True)
until = time.time() + float(sys.argv[1])
while time.time() < until:
    try: data, where = raw.recvfrom(65535)
    except TimeoutError: continue
    if b"${MARK}" in data and where[2] != 4: print(re.findall(rb"${MARK} ([A-Za-z ]*)", data), flush=True)`;

describe("the network of a sandbox", needs("root", "curl", "python3"), () => {
  let server: TestServer;
  let box: string;
  let service: Server;
  let port: number;
  const run = async (sandbox: string, ...args: readonly string[]): Promise<string> =>
    (await server.client.call("runCommand", { sandbox, command: [process.execPath, "-e", ...args] })).stdout.trim();
  const addresses = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter((each) => !each.internal && each.family === "IPv4")
    .map(({ address }) => address);

  beforeAll(async () => {
    // The pinned Node may lie where a sandbox sees nothing, such as /tmp.
    server = await TestServer.start({ config: { expose: [dirname(process.execPath)] } });
    box = (await server.create()).id;
    service = createServer((socket) => socket.end()).listen(0, "0.0.0.0");
    await once(service, "listening");
    port = (service.address() as AddressInfo).port;
  });
  afterAll(async () => {
    service.close();
    await server?.remove();
  });

  test("NW-02 and NW-03: a service of the host is not reached by any of its addresses", async () => {
    const gateways = execFileSync("ip", ["-o", "route", "show", "default"], { encoding: "utf8" }).match(/(?<=via )[\d.]+/g) ?? [];
    const six = Object.entries(networkInterfaces()).flatMap(([device, all]) =>
      (all ?? []).flatMap(({ family, address }) =>
        family === "IPv6" ? [address.startsWith("fe80:") ? `${address}%${device}` : address] : [],
      ),
    );
    const broadcasts = addresses.map((address) => address.replace(/\d+$/, "255"));
    const names = ["127.0.0.1", "::1", "0.0.0.0", "localhost", "::ffff:127.0.0.1", ...addresses, ...gateways, ...six, ...broadcasts];
    for (const name of names) expect(await run(box, DIAL, name, String(port)), name).not.toBe("connected");
    for (const name of ["127.0.0.1", ...addresses]) {
      const control = spawnHost(DIAL, name, port);
      expect(await control, name).toBe("connected");
    }
  });

  test("NW-01: no packet has a way out", async () => {
    const { stdout } = await server.sh(
      box,
      "ip -o link | wc -l; ip -o link | grep -c ' lo:'; ip route show table all | grep -vc 'dev lo'; ip -6 route show table all | grep -vc 'dev lo'",
      { user: "root" },
    );
    expect(stdout).toBe("1\n1\n0\n0\n");
    for (const address of ["192.0.2.1", "1.1.1.1", "2001:db8::1", "169.254.169.254", "10.0.0.1", "255.255.255.255", "224.0.0.251"]) {
      expect(await run(box, DIAL, address, "80"), address).toMatch(/^(ENETUNREACH|EACCES|EADDRNOTAVAIL|EINVAL)$/);
      expect(await run(box, SEND, address, "53"), address).toMatch(/^(ENETUNREACH|EACCES|EADDRNOTAVAIL)$/);
    }
    const heard = createSocket("udp4").bind(0, "127.0.0.1");
    await once(heard, "listening");
    const message = once(heard, "message");
    expect(await spawnHost(SEND, "127.0.0.1", heard.address().port)).toBe("sent");
    await message;
    heard.close();
  });

  test("NW-01: by no protocol does a packet reach a device of the host", async () => {
    const counted = spawn("python3", ["-c", COUNT, "198.51.100.7", "3"], { stdio: ["ignore", "pipe", "inherit"] });
    await once(counted.stdout, "data");
    const tried = await server.client.call("runCommand", {
      sandbox: box,
      user: "root",
      command: ["python3", "-c", SEND_ALL, "198.51.100.7"],
    });
    expect(tried.stdout.trim().split("\n"), tried.stderr).toHaveLength(7);
    expect(tried.stdout).not.toContain("sent");
    expect((await text(counted.stdout)).trim()).toBe("0");
    // The control: with a device and a route they go out.
    const wire =
      "ip link add one type veth peer name two && ip addr add 198.51.100.1/24 dev one && ip link set one up && ip link set two up && ip neigh add 198.51.100.7 lladdr 02:00:00:00:00:07 dev one";
    const control = `${wire} && { python3 -c "$COUNT" 198.51.100.7 3 & sleep 0.5; python3 -c "$SEND_ALL" 198.51.100.7; wait; }`;
    const { stdout } = await promisify(execFile)("unshare", ["-n", "sh", "-c", control], { env: { ...process.env, COUNT, SEND_ALL } });
    for (const name of ["tcp", "udp", "raw icmp"]) expect(stdout).toContain(`${name} sent`);
    expect(Number(stdout.trim().split("\n").at(-1))).toBeGreaterThan(2);
  });

  test("NW-01: root inside can't make itself an interface or a route", async () => {
    const lines = [
      "ip link add veth0 type veth peer name veth1",
      "ip link add dummy0 type dummy",
      "ip route add default dev lo",
      "ip addr add 10.9.9.9/24 dev lo",
      "ip link set lo down",
      "ip tuntap add dev tap0 mode tap",
    ];
    for (const line of lines) expect((await server.sh(box, line, { user: "root" })).end?.exitCode, line).not.toBe(0);
    expect(
      spawnSync("unshare", ["-n", "sh", "-c", "ip link set lo up && ip route add default dev lo && ip addr add 10.9.9.9/24 dev lo"]).status,
    ).toBe(0);
  });

  test("NW-08: a sandbox does not reach a sibling, whose port only the server reaches", async () => {
    const sibling = await server.create();
    const listen = `require("net").createServer((s)=>{s.on("error",()=>{});s.end("hello")}).listen(7321,"0.0.0.0",()=>console.log("up"))`;
    await server.client.call("runCommand", { sandbox: sibling.id, command: [process.execPath, "-e", listen], background: true });
    const dial = async (): Promise<string> => run(sibling.id, DIAL, "127.0.0.1", "7321");
    await expect.poll(dial, { timeout: 10_000 }).toBe("connected");
    for (const address of ["127.0.0.1", "0.0.0.0", "::1", "127.0.0.2", "127.255.255.254"])
      expect(await run(box, DIAL, address, "7321"), address).not.toBe("connected");
    const through = await server.client.dial(sibling.id, 7321);
    expect(String((await once(through, "data"))[0])).toBe("hello");
    through.destroy();
    await server.client.call("removeSandbox", { sandbox: sibling.id });
  });

  test("NW-09: frames and packets under another's name do not leave the sandbox, whatever their destination", async () => {
    const heard = spawn("python3", ["-c", SNIFF, "2"], { stdio: ["ignore", "pipe", "inherit"] });
    await once(heard.stdout, "data");
    const tried = await server.client.call("runCommand", { sandbox: box, user: "root", command: ["python3", "-c", SPOOF, "lo"] });
    expect(tried.stdout, tried.stderr).toContain("tried");
    for (const line of ["ip link add link lo name lo.5 type vlan id 5", "ip link set lo address 02:00:00:00:00:01"])
      expect((await server.sh(box, line, { user: "root" })).end?.exitCode, line).not.toBe(0);
    expect(await text(heard.stdout)).toBe("");
    // The control: where there is a device, the same frames arrive at its other end.
    const wire = "ip link add one type veth peer name two && ip link set one up && ip link set two up && ip link set lo up";
    const control = `${wire} && { python3 -c "$SNIFF" 2 & sleep 0.5; python3 -c "$SPOOF" one; ip link add link one name one.5 type vlan id 5; wait; }`;
    const { stdout } = await promisify(execFile)("unshare", ["-n", "sh", "-c", control], { env: { ...process.env, SNIFF, SPOOF } });
    for (const kind of ["source address", "DHCP", "router advertisement", "VLAN", "ARP"]) expect(stdout).toContain(kind);
  });

  test("NW-10: root inside has no rules to flush, and those outside hold", async () => {
    const lines = ["nft flush ruleset", "iptables -F", "ip rule flush", "ip route flush table all", "unshare -n true", "unshare -rn true"];
    for (const line of lines) expect((await server.sh(box, line, { user: "root" })).end?.exitCode, line).not.toBe(0);
    expect(await run(box, DIAL, "1.1.1.1", "80")).toMatch(/^ENETUNREACH$/);
    const denied = "curl -sS -m 5 -x http://127.0.0.1:4098 http://169.254.169.254/";
    expect((await server.sh(box, denied, { user: "root" })).stdout).toContain('"metadata"');
    // The control: rules that lie inside a namespace are its root's to flush.
    const look = `python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 9))' 2>/dev/null && echo open || echo closed`;
    const inside = `ip link set lo up; ip addr add 192.0.2.1/32 dev lo
      ip rule add pref 5 lookup local; ip rule del pref 0; ip rule add pref 1 to 192.0.2.1 prohibit; ${look}; ip rule del pref 1; ${look}`;
    expect((await promisify(execFile)("unshare", ["-n", "sh", "-c", inside])).stdout).toBe("closed\nopen\n");
  });

  test("without a network names do not resolve inside; with one those that are denied do, and no question leaves", async () => {
    const lookup = `require("dns").lookup("example.com",(e,a)=>console.log(e?.code??a))`;
    const off = (await server.create({ network: "off" })).id;
    expect(await run(off, lookup)).toMatch(/^(EAI_AGAIN|ENOTFOUND)$/);
    await server.client.call("removeSandbox", { sandbox: off });
    const listed = (await server.create({ network: "allow-list" })).id;
    expect(await run(listed, lookup)).toMatch(/^198\.1[89]\./);
    await server.client.call("removeSandbox", { sandbox: listed });
    expect(
      execFileSync(process.execPath, ["-e", `require("dns").lookup("localhost",(e,a)=>console.log(a))`], { encoding: "utf8" }),
    ).toMatch(/127.0.0.1|::1/);
  });

  /** Without blocking this process, which is the one that answers. */
  async function spawnHost(script: string, host: string, at: number): Promise<string> {
    return (await promisify(execFile)(process.execPath, ["-e", script, host, String(at)])).stdout.trim();
  }
});
