import { readFileSync } from "node:fs";
import { command } from "../command.ts";

/** The package's own version: two folders up from src/cli and from dist/cli alike. */
export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest ? String(manifest.version) : "unknown";
}

export default command({
  name: "version",
  summary: "Print the version",
  examples: [["viv version", "of this program and the Node it runs on"]],
  options: {},
  positionals: [],
  async run({ json, screen }) {
    const version = packageVersion();
    if (json) screen.json({ version, node: process.version, platform: process.platform, arch: process.arch });
    else screen.print(`viv ${version} (Node ${process.version}, ${process.platform} ${process.arch})`);
  },
});
