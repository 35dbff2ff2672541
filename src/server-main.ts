/** The server as a program: settings from the environment and flags, signals, exit codes. */
import { flushCompileCache } from "node:module";
import { parseArgs } from "node:util";
import { listenChoice } from "./base/config/listen-choice.ts";
import { findPaths } from "./base/config/paths.ts";
import { jsonLogger } from "./base/host/log.ts";
import { collectAfterStart } from "./base/host/start-garbage.ts";
import { ERRORS, VivError } from "./base/schema/errors.ts";
import { Server } from "./server.ts";

const paths = findPaths();
const log = jsonLogger((line) => process.stderr.write(line));
const text = { type: "string" } as const;
const flag = { type: "boolean" } as const;
const { values } = parseArgs({
  options: {
    listen: text,
    "tls-cert": text,
    "tls-key": text,
    "self-signed": flag,
    "behind-proxy": text,
    url: text,
    previews: text,
    repair: flag,
  },
  strict: true,
});
/** In tests: the point at which the process dies as if by kill -9, and how many times it comes there until then. */
let crash = { point: "", visits: 0 };
const stopping = Promise.withResolvers<string>();

/** What is at the path of the state folder now is not ours: nothing is closed, unmounted or removed. */
function disowned(why: VivError): never {
  log.warn(why.message, { code: why.code, remedy: why.remedy });
  process.exit(ERRORS[why.code].exit);
}

function reach(point: string): void {
  if (point === crash.point && (crash.visits -= 1) <= 0) process.kill(process.pid, "SIGKILL");
}

async function main(): Promise<number> {
  // Folders of volumes are seen inside by every user; the state folder around them is private.
  process.umask(0o022);
  try {
    const listen = listenChoice({
      address: values.listen,
      cert: values["tls-cert"],
      key: values["tls-key"],
      selfSigned: values["self-signed"],
      behindProxy: values["behind-proxy"],
      url: values.url,
      previews: values.previews,
    });
    const server = await Server.start({
      paths,
      env: process.env,
      log,
      repair: values.repair === true,
      reach,
      onShutdown: () => stopping.resolve("request"),
      onDisowned: disowned,
      listen,
    });
    // By itself it is written at the end, and a server may live for months, or be killed.
    flushCompileCache();
    collectAfterStart();
    log.info("stopping", { why: await stopping.promise });
    await server.stop();
    return 0;
  } catch (error) {
    const failure = VivError.from(error);
    log.warn(failure.message, {
      code: failure.code,
      remedy: failure.remedy,
      ...(failure.code === "internal" ? { stack: failure.stack } : {}),
    });
    return ERRORS[failure.code].exit;
  }
}

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => stopping.resolve(signal));
}
// A test starts the server with a channel of Node's to itself; `viv` starts it with none, so that nothing else arms a crash point.
process.on("message", (armed: typeof crash) => {
  crash = armed;
  process.send?.("armed");
});
process.exit(await main());
