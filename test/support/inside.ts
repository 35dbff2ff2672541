/** Requests to the gateway by programs inside a sandbox. */
import type { ActionAnswer } from "../../src/base/schema/action.ts";
import type { PolicyAction } from "../../src/base/schema/policy.ts";
import type { TestServer } from "./server.ts";

const LOOP = `while read -r body; do
  curl -sS -d "$body" http://localhost:4097/sandbox/self/actions || echo '{"verdict":"none"}'
done`;

/** Puts actions to the gateway one after the other, as a hook inside does; a text is a shell line. */
export async function act(
  server: TestServer,
  sandbox: string,
  actions: readonly (PolicyAction | string)[],
  more: { readonly wait?: number } = {},
): Promise<ActionAnswer[]> {
  const bodies = actions.map((action) => JSON.stringify({ action: typeof action === "string" ? line(action) : action, ...more }));
  const { stdout, stderr } = await server.client.call("runCommand", {
    sandbox,
    command: ["/bin/sh", "-c", LOOP],
    stdin: `${bodies.join("\n")}\n`,
  });
  if (stderr !== "") throw new Error(stderr);
  return stdout
    .trim()
    .split("\n")
    .map((answer) => JSON.parse(answer) as ActionAnswer);
}

export function line(command: string): PolicyAction {
  return { kind: "command", command };
}
