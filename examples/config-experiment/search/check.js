import { readFileSync } from "node:fs";

const { bucket } = JSON.parse(readFileSync(new URL("config.json", import.meta.url), "utf8"));
// A bucket must fit into a page of memory.
process.exitCode = Number.isInteger(bucket) && bucket > 0 && bucket <= 4096 ? 0 : 1;
