/** NW of the threat list, as far as it holds without a proxy: a sandbox has a loopback of its own and nothing else. */
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import { networkInterfaces } from "node:os";
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

describe("the network of a sandbox", needs("root"), () => {
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
    const names = ["127.0.0.1", "::1", "0.0.0.0", "localhost", ...addresses];
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
    await expect.poll(dial).toBe("connected");
    for (const address of ["127.0.0.1", "0.0.0.0", "::1", "127.0.0.2", "127.255.255.254"])
      expect(await run(box, DIAL, address, "7321"), address).not.toBe("connected");
    const through = await server.client.dial(sibling.id, 7321);
    expect(String((await once(through, "data"))[0])).toBe("hello");
    through.destroy();
    await server.client.call("removeSandbox", { sandbox: sibling.id });
  });

  test("names do not resolve inside, and no question leaves", async () => {
    expect(await run(box, `require("dns").lookup("example.com",(e)=>console.log(e?.code))`)).toMatch(/^(EAI_AGAIN|ENOTFOUND)$/);
    expect(
      execFileSync(process.execPath, ["-e", `require("dns").lookup("localhost",(e,a)=>console.log(a))`], { encoding: "utf8" }),
    ).toMatch(/127.0.0.1|::1/);
  });

  /** Without blocking this process, which is the one that answers. */
  async function spawnHost(script: string, host: string, at: number): Promise<string> {
    return (await promisify(execFile)(process.execPath, ["-e", script, host, String(at)])).stdout.trim();
  }
});
