/** How plain requests and tunnels end before their time: on whichever side, in each stage; nothing hangs, nothing stays, and no half looks whole. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PlainLab, type PlainClient } from "../support/plain-lab.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** What is known of a request when it ends. */
interface Stage {
  /** Brings a connection there. */
  readonly reach: (client: PlainClient) => Promise<void>;
  /** Whether something went out. */
  readonly isSent: boolean;
}

describe("a plain request or a tunnel that ends early", needs("linux", "compiler", "python3"), () => {
  let lab: PlainLab;
  let full: FullListener;
  beforeAll(async () => {
    full = await FullListener.open();
    lab = await opened();
  }, 60_000);
  beforeEach(async () => {
    lab.heard.length = lab.records.length = lab.sockets = lab.looks = 0;
    lab.judge = undefined;
    await lab.set({});
  });
  afterAll(() => {
    lab?.close();
    full?.close();
  });

  async function opened(): Promise<PlainLab> {
    const made = new PlainLab();
    await made.open();
    made.names.set("full.test", ["127.0.0.5"]);
    made.names.set("any.test", ["127.0.0.2"]);
    made.opened.push({ host: "full.test", ports: [full.port], tcp: false }, { host: "any.test", ports: [made.port], tcp: true });
    made.answers.set("/silent", () => undefined);
    made.answers.set("/hint", (socket) => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n"));
    made.answers.set("/begun", (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun"));
    made.answers.set("/open", (socket) => socket.write("HTTP/1.1 200 OK\r\n\r\nbegun"));
    made.answers.set("/flood", flood);
    return made;
  }

  const heard = (): Promise<unknown> =>
    eventually(
      () => lab.heard.length,
      (count) => count > 0,
    );
  const begun = (client: PlainClient): Promise<unknown> =>
    eventually(
      () => client.waiting,
      (bytes) => bytes > 0,
    );

  const stages: Readonly<Record<string, Stage>> = {
    "while a judge thinks": {
      reach: async (client) => {
        let asked = false;
        lab.judge = (_, __, ruling, signal) => {
          asked = true;
          return new Promise((resolve) => signal?.addEventListener("abort", () => resolve(ruling)));
        };
        client.write(lab.request("/judged"));
        await eventually(
          () => asked,
          (isAsked) => isAsked,
        );
      },
      isSent: false,
    },
    "while it is dialled": {
      reach: async (client) => {
        client.write(lab.request("/dialled", { host: `full.test:${full.port}` }));
        await eventually(
          () => lab.records.length,
          (count) => count > 0,
        );
      },
      isSent: false,
    },
    "while its answer has not begun": {
      reach: async (client) => {
        client.write(lab.request("/silent"));
        await heard();
      },
      isSent: true,
    },
    "after a hint": {
      reach: async (client) => {
        client.write(lab.request("/hint"));
        await heard();
      },
      isSent: true,
    },
    "while its answer of known length comes": {
      reach: async (client) => void (await begun(client.write(lab.request("/begun")))),
      isSent: true,
    },
    "while its answer until the end comes": {
      reach: async (client) => void (await begun(client.write(lab.request("/open")))),
      isSent: true,
    },
    "while a flood comes that nobody reads": {
      reach: async (client) => {
        client.socket.pause();
        client.write(lab.request("/flood"));
        await heard();
      },
      isSent: true,
    },
    "while a tunnel is dialled": {
      reach: async (client) => {
        client.write(lab.tunnel(`full.test:${full.port}`));
        await eventually(
          () => lab.records.length,
          (count) => count > 0,
        );
      },
      isSent: false,
    },
    "while nothing was said in its tunnel": {
      reach: async (client) => void (await begun(client.write(lab.tunnel()))),
      isSent: false,
    },
    "while half a greeting was said in its tunnel": {
      reach: async (client) => {
        await begun(client.write(lab.tunnel()));
        client.write("\x16\x03\x01\x02\x00\x01");
        await eventually(
          () => lab.looks,
          (count) => count > 0,
        );
      },
      isSent: false,
    },
    "while its tunnel is used": {
      reach: async (client) => {
        await begun(client.write(lab.tunnel(`any.test:${lab.port}`)));
        client.write("GET /silent HTTP/1.1\r\n\r\n");
        await heard();
      },
      isSent: true,
    },
    "while a flood comes through its tunnel that nobody reads": {
      reach: async (client) => {
        await begun(client.write(lab.tunnel(`any.test:${lab.port}`)));
        client.socket.pause();
        client.write("GET /flood HTTP/1.1\r\n\r\n");
        await heard();
      },
      isSent: true,
    },
    "while the next one is waited for": {
      reach: async (client) => {
        await client.write(lab.request("/before")).answer();
        lab.heard.length = 0;
      },
      isSent: false,
    },
  };

  async function settled(): Promise<void> {
    await lab.idle();
    await eventually(
      () => lab.outside.size,
      (count) => count === 0,
    );
    lab.judge = undefined;
    const before = lab.sockets;
    expect((await lab.ask("/next")).body.toString()).toBe("hello /next");
    expect(lab.sockets).toBe(before);
    await lab.idle();
  }

  /** What the first request after that is answered. */
  async function killed(reach: Stage["reach"]): Promise<string> {
    const client = lab.client();
    await reach(client);
    const { pid } = lab.mover;
    process.kill(pid ?? 0, "SIGKILL");
    client.socket.resume();
    await client.rest();
    lab.judge = undefined;
    await eventually(
      () => lab.mover.pid,
      (next) => next !== undefined && next !== pid,
    );
    const text = await eventually(
      () => lab.say(lab.request("/after", { headers: "Connection: close\r\n" })),
      (said) => said !== "",
    );
    await lab.idle();
    return text;
  }

  describe.each(Object.entries(stages))("%s", (_, { reach, isSent }) => {
    test("because its client hangs up: nothing more is dialled, and what was sent is recorded", async () => {
      const client = lab.client();
      await reach(client);
      expect(lab.connections).toBe(1);
      client.socket.destroy();
      await settled();
      expect(lab.heard.filter((head) => !head.includes("/next"))).toHaveLength(isSent ? 1 : 0);
      const others = lab.records.filter(({ path }) => path !== "/next" && path !== "/before");
      const bytes = others.map(({ ended }) => ended?.sentBytes ?? 0).filter((sent) => sent > 0);
      expect(bytes).toEqual(isSent ? [lab.heard[0]?.length] : []);
    });

    test("because the rules or the way out end it", async () => {
      const client = lab.client();
      await reach(client);
      lab.egress.close("one");
      client.socket.resume();
      await client.rest();
      expect(lab.connections).toBe(0);
      await lab.set({});
      await settled();
    });

    test("because the mover is killed", async () => {
      const before = lab;
      // One that is killed too often is not started again for a while.
      lab = await opened();
      try {
        expect(await killed(reach)).toContain("hello /after");
      } finally {
        lab.close();
        lab = before;
      }
    });

    test("costs nothing while it lasts", async () => {
      const client = lab.client();
      await reach(client);
      const before = cpuTicks(lab.mover.pid ?? 0);
      // A loop that is kept awake takes all of it.
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(cpuTicks(lab.mover.pid ?? 0) - before).toBeLessThan(8);
      client.socket.destroy();
      await settled();
    });
  });
});

function flood(socket: Socket): void {
  socket.write("HTTP/1.1 200 OK\r\n\r\n");
  const more = (): void => void (socket.destroyed || socket.write(Buffer.alloc(100_000), more));
  more();
}

/** Of the processor, of which there are a hundred in a second. */
function cpuTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

/** A host that takes no further connection, and refuses none: its queue is full. */
class FullListener {
  readonly port: number;
  readonly #close: () => void;

  private constructor(port: number, close: () => void) {
    this.port = port;
    this.#close = close;
  }

  static async open(): Promise<FullListener> {
    const program =
      "import socket,time; s=socket.socket(); s.bind(('127.0.0.5',0)); s.listen(0); print(s.getsockname()[1],flush=True); time.sleep(600)";
    const child = spawn("python3", ["-c", program], { stdio: ["ignore", "pipe", "ignore"] });
    const port = Number(String((await once(child.stdout, "data"))[0]));
    const waiting = Array.from({ length: 3 }, () => connect(port, "127.0.0.5").on("error", () => undefined));
    await once(waiting[0] as Socket, "connect");
    return new FullListener(port, () => {
      for (const socket of waiting) socket.destroy();
      child.kill();
    });
  }

  close(): void {
    this.#close();
  }
}
