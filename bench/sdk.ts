/** What a program waits for when it begins to use the SDK: the import, and its first call to a server that runs. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundleSdk } from "../scripts/bundle.ts";
import { rested, series } from "./measure.ts";
import type { Group } from "./rows.ts";
import { BenchServer } from "./server.ts";

const ROUNDS = 20;

/** Node itself has started already. */
const PROGRAM = `
const began = performance.now();
const { Vivarium } = await import("./package/dist/sdk/index.js");
const viv = new Vivarium({ start: false });
await viv.status();
console.log(performance.now() - began);
viv.close();
`;

export const sdkGroup: Group = {
  keys: ["sdk_start_ms"],
  async measure({ quick, progress }) {
    return BenchServer.with(async (server) => {
      progress("sdk_start_ms");
      await bundleSdk(join(server.place, "package", "dist", "sdk"));
      const program = join(server.place, "start.mjs");
      writeFileSync(program, PROGRAM);
      const once = async (): Promise<number> => Number(execFileSync(process.execPath, [program], { env: server.env, encoding: "utf8" }));
      const taken: number[] = [];
      for (let index = 0; index < (quick ? 5 : ROUNDS); index += 1) taken.push(await rested(once));
      const all = series(taken);
      return { sdk_start_ms: { figure: all.median, raw: { all } } };
    });
  },
};
