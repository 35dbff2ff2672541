/**
 * Vivarium in OpenCode, inside a sandbox. The policy of the sandbox is asked before each tool call, and the agent gets the tools of
 * docs/GATEWAY.md: siblings, resources, tasks, questions, snapshots, status.
 *
 * OpenCode goes on without a plugin that fails to load. The configuration of a run therefore denies every tool, and this plugin takes
 * that back: without the plugin, the agent can do nothing.
 */
const GATEWAY = process.env.VIVARIUM_GATEWAY ?? "http://127.0.0.1:4097";
/** What the agent may use in a run; set by Vivarium alone, which then reads the output. */
const RUN_PERMISSION = process.env.VIVARIUM_PERMISSION;

/** While the server is away the agent waits so long; then what it wanted to do is refused. */
const PATIENCE_MS = 600_000;
const PAUSE_MS = 500;
/** Longest wait of one request; some runtimes end a silent one after five minutes. */
const WAIT_SECONDS = 240;

/** Ids of the messages that this process was given, in order, by session. */
const given = new Map();
/** How many of them the model had at its last request, by session. */
const read = new Map();

/** Notifications of the Agent Client Protocol whose method begins with `_` are extensions. */
function tell(method, params) {
  if (RUN_PERMISSION !== undefined) process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", method: `_vivarium/${method}`, params })}\n`);
}

const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function request(path, body, signal) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      const answer = await fetch(`${GATEWAY}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
        body: JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      });
      const text = await answer.text();
      if (answer.status !== 429) return { status: answer.status, body: parsed(text) };
      await rest(1000 * Number(answer.headers.get("retry-after") ?? 1));
    } catch (error) {
      if (signal?.aborted === true || Date.now() > end) throw new Error(`Vivarium does not answer: ${error.message}`, { cause: error });
      await rest(PAUSE_MS);
    }
  }
}

/** A long call is answered as a stream of events, the last of which is the answer. */
function parsed(text) {
  if (text.startsWith("{")) return JSON.parse(text);
  const events = text.split("\n").filter((line) => line.startsWith("data: "));
  return JSON.parse(events.at(-1)?.slice("data: ".length) ?? "{}");
}

let calls = 0;
async function callTools(method, params, signal) {
  const { body } = await request("/mcp", { jsonrpc: "2.0", id: (calls += 1), method, params }, signal);
  if (body.result === undefined) throw new Error(`Vivarium: ${body.error?.message ?? "no answer"}`);
  return body.result;
}

/** The field that says what a tool works on. */
const ARGUMENTS = {
  bash: "command",
  read: "filePath",
  write: "filePath",
  edit: "filePath",
  glob: "path",
  grep: "path",
  list: "path",
  webfetch: "url",
};
const PATCHED = /^\*\*\* (Add File|Update File|Delete File|Move to): (.+)$/gm;

/** What the policy is asked about a call. */
function actionsOf(tool, args, directory) {
  if (tool === "apply_patch" || tool === "patch") {
    const found = [...String(args.patchText ?? "").matchAll(PATCHED)];
    const edits = found.map(([, , path]) => ({ kind: "tool", tool: "edit", argument: path.trim() }));
    const deletes = found
      .filter(([, what]) => what === "Delete File")
      .map(([, , path]) => ({ kind: "path", path: path.trim(), access: "delete" }));
    return found.length === 0 ? [{ kind: "tool", tool }] : [...edits, ...deletes];
  }
  const argument = ARGUMENTS[tool] === undefined ? undefined : (args[ARGUMENTS[tool]] ?? (tool === "bash" ? undefined : directory));
  return [{ kind: "tool", tool, ...(typeof argument === "string" ? { argument } : {}) }];
}

/** Returns if it is allowed, and throws if it is not. A person who is asked has time. */
async function decide(action) {
  for (let wait = 0; ; wait = WAIT_SECONDS) {
    const { status, body } = await request("/sandbox/self/actions", { action, wait });
    const isWaiting = status === 202 && body.verdict === "ask";
    if (isWaiting && wait === 0) tell("waiting", { for: "person", until: body.approval?.deadline ?? null, text: body.reason });
    if (isWaiting) continue;
    if (wait > 0) tell("resumed", { for: "person" });
    if (status === 200 && body.verdict === "allow") return;
    throw new Error(`Vivarium's policy: ${body.reason ?? body.error?.message ?? "not allowed"}`);
  }
}

/** Tools as OpenCode takes them. Its own way makes every field required; `tool.definition` puts that right. */
function toolOf({ name, description, inputSchema }) {
  return {
    description,
    args: inputSchema.properties,
    execute: async (args, { abort }) => {
      const result = await callTools("tools/call", { name, arguments: args }, abort);
      const text = result.content.map((block) => block.text).join("\n");
      if (result.isError === true) throw new Error(text);
      return text;
    },
  };
}

export const Vivarium = async ({ directory }) => {
  const { tools } = await callTools("tools/list", {});
  const own = new Map(tools.map((tool) => [tool.name, tool]));
  tell("ready", {});
  let retries = false;
  return {
    config: async (config) => {
      if (RUN_PERMISSION !== undefined) config.permission = JSON.parse(RUN_PERMISSION);
    },
    tool: Object.fromEntries(tools.map((tool) => [tool.name, toolOf(tool)])),
    "tool.definition": async ({ toolID }, definition) => {
      const tool = own.get(toolID);
      if (tool !== undefined) definition.jsonSchema = tool.inputSchema;
    },
    "tool.execute.before": async ({ tool, callID }, { args }) => {
      tell("call", { call: callID, tool, input: args });
      // The gateway itself judges these.
      if (own.has(tool) || tool === "invalid") return;
      for (const action of actionsOf(tool, args ?? {}, directory)) await decide(action);
    },
    "chat.message": async ({ sessionID }, { message }) => {
      given.set(sessionID, [...(given.get(sessionID) ?? []), message.id]);
    },
    "experimental.chat.messages.transform": async (_, { messages }) => {
      const sessionId = messages.at(-1)?.info.sessionID;
      const ids = new Set(messages.map(({ info }) => info.id));
      const count = (given.get(sessionId) ?? []).findLastIndex((id) => ids.has(id)) + 1;
      if (count > (read.get(sessionId) ?? 0)) tell("read", { sessionId, messages: count });
      read.set(sessionId, count);
    },
    "shell.env": async (_, { env }) => {
      // In a run the settings of OpenCode lie elsewhere; those of other programs do not.
      if (RUN_PERMISSION !== undefined) env.XDG_CONFIG_HOME = `${process.env.HOME}/.config`;
    },
    event: async ({ event: { type, properties } }) => {
      if (type !== "session.status") return;
      const { type: state, message, next } = properties.status;
      if (state === "retry") tell("waiting", { for: "model", until: new Date(next).toISOString(), text: message });
      else if (retries) tell("resumed", { for: "model" });
      retries = state === "retry";
    },
  };
};
