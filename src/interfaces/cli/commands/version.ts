import { readVersion } from "../../../base/config/machine.ts";
import { command } from "../command.ts";

export default command({
  name: "version",
  summary: "Print the version",
  examples: [["viv version", "of this program and the Node it runs on"]],
  options: {},
  positionals: [],
  async run({ json, screen }) {
    const version = readVersion();
    if (json) screen.json({ version, node: process.version, platform: process.platform, arch: process.arch });
    else screen.print(`viv ${version} (Node ${process.version}, ${process.platform} ${process.arch})`);
  },
});
