// How many steps a search takes with the configured size of a bucket; fewer are better.
import { readFileSync } from "node:fs";

const { bucket } = JSON.parse(readFileSync(new URL("config.json", import.meta.url), "utf8"));
const items = 10_000;
const steps = Math.ceil(items / bucket) / 2 + bucket / 2;
console.log(Math.round(steps));
