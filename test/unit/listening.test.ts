import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { listeningPorts, parseListening } from "../../src/base/host/listening.ts";

describe("ports with a listener", () => {
  test("are those of the kernel's table that wait for callers", () => {
    const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000   101
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0
   2: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000
`;
    expect(parseListening(table)).toEqual([5432, 22]);
  });

  test("are told while they are open, by either protocol", async () => {
    for (const host of ["127.0.0.1", "::1"]) {
      const server = createServer().listen(0, host);
      await once(server, "listening");
      const { port } = server.address() as AddressInfo;
      expect(listeningPorts().has(port)).toBe(true);
      server.close();
      await once(server, "close");
      expect(listeningPorts().has(port)).toBe(false);
    }
  });
});
