/** Fetches the agents that rows of the benchmark run: a part of `npm run bench:setup`. */
import { installs } from "./installed-agents.ts";

const { name, version } = await installs.install("claude");
process.stdout.write(`${name} ${version} is installed.\n`);
