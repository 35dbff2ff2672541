import { command } from "../command.ts";
import { duration, until } from "../text.ts";

export default command({
  name: "extend",
  summary: "Give a sandbox more time",
  examples: [
    ["viv extend try", "its idle time starts anew"],
    ["viv extend try --by 4h", "it stays for four hours at least"],
    ["viv extend try --idle 0", "it never stops by itself"],
  ],
  options: {
    by: { type: "duration", value: "TIME", summary: "Time from now, such as 4h; the idle limit if left out" },
    idle: { type: "duration", value: "TIME", summary: "New idle limit; 0 for never" },
  },
  positionals: [{ name: "SANDBOX", summary: "Id or name", completes: "sandbox" }],
  async run({ options, positionals: [sandbox = ""], json, screen, client }) {
    const result = await (
      await client()
    ).call("extendSandbox", {
      sandbox,
      ...(options.by === undefined ? {} : { by: options.by }),
      ...(options.idle === undefined ? {} : { idle: options.idle }),
    });
    if (json) return screen.json(result);
    const idle = result.idleMs === 0 ? "" : `, after ${duration(result.idleMs)} without use`;
    screen.print(
      result.expiresAt === null ? `${result.name} never stops by itself.` : `${result.name} stops ${until(result.expiresAt)}${idle}.`,
    );
  },
});
