import { command } from "../command.ts";
import { usageError } from "../values.ts";
import { bytes } from "../text.ts";

const SMALLEST_BYTES = 1024 ** 2;

export default command({
  name: "limits",
  summary: "Change how much CPU and memory a running sandbox may use",
  details:
    "The new limits apply at once, within the ceilings of the user config. If a sandbox asks for more than its limits, the server asks a person. Disk space is fixed when a sandbox is created.",
  examples: [
    ["viv limits try", "show them"],
    ["viv limits try --cpus 4 --memory 8g", "give it more while it runs"],
  ],
  options: {
    cpus: { type: "number", value: "N", summary: "CPU cores, fractions allowed" },
    memory: { type: "size", value: "SIZE", summary: "Memory, such as 512m or 4g" },
    processes: { type: "integer", value: "N", summary: "Processes and threads" },
  },
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ options: { cpus, memory, processes }, positionals: [sandbox = ""], json, screen, client: connect }) {
    if ((memory ?? SMALLEST_BYTES) < SMALLEST_BYTES) throw usageError("--memory must be 1m at least.");
    const client = await connect();
    const change = {
      ...(cpus === undefined ? {} : { cpus }),
      ...(memory === undefined ? {} : { memoryBytes: memory }),
      ...(processes === undefined ? {} : { processes }),
    };
    const { name, limits } =
      Object.keys(change).length === 0
        ? await client.call("findSandbox", { sandbox })
        : await client.call("limitSandbox", { sandbox, ...change });
    if (json) return screen.json(limits);
    screen.print(
      `${name}: ${limits.cpus} CPUs, ${bytes(limits.memoryBytes)} of memory, ${limits.processes} processes, ${bytes(limits.diskBytes)} of disk.`,
    );
  },
});
