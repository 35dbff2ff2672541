import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { VIV } from "../../../../base/config/machine.ts";
import { findPaths, preparePaths } from "../../../../base/config/paths.ts";
import { readEntry, withEntry } from "../../../../base/config/settings-edit.ts";
import { command, type Invocation, type OptionDeclarations } from "../../command.ts";
import { confirm } from "../../confirm.ts";
import { CHAT_CLIENTS, SERVER_NAME, type ChatClient, type Started } from "../../mcp-clients.ts";
import { beforeFile, hashOf, keepBefore, readBefore, readSettingsFile, writeSettingsFile } from "../../settings-file.ts";
import { usageError } from "../../values.ts";

const NAMES = Object.keys(CHAT_CLIENTS);
const OPTIONS = {
  print: { type: "flag", summary: "Only print what belongs into the client's settings" },
  undo: { type: "flag", summary: "Bring the client's settings back" },
  yes: { type: "flag", short: "y", summary: "Do not ask" },
  project: { type: "list", short: "p", value: "PATH", completes: "path", summary: "A folder that the client may name as a project" },
  tools: {
    type: "text",
    value: "NAMES",
    summary: "Tools and sets of them (default, desktop, notebook), with commas between; default if left out",
  },
} as const satisfies OptionDeclarations;

type Context = Invocation<typeof OPTIONS>;

function clientOf(name: string): ChatClient {
  const client = Object.hasOwn(CHAT_CLIENTS, name) ? CHAT_CLIENTS[name] : undefined;
  if (client === undefined)
    throw usageError(`There is no set-up for ${JSON.stringify(name)}.`, `There is one for ${NAMES.join(", ")}. Others take: viv mcp`);
  return client;
}

/** Refuses names of tools that do not exist. Only then are the schemas of all tools loaded. */
async function checkTools(names: string | undefined): Promise<void> {
  if (names === undefined) return;
  const { toolsOf } = await import("../../mcp-tools.ts");
  toolsOf(names);
}

/** State and config of this very user, wherever the client starts it. */
function startedBy({ options, cwd, env }: Context, { isHere }: ChatClient): Started {
  const places = ["VIV_HOME", "VIV_CONFIG"].flatMap((name) => (env[name] ? [[name, resolve(cwd, env[name])] as const] : []));
  const projects = options.project.flatMap((path) => ["--project", resolve(cwd, path)]);
  const tools = options.tools === undefined ? [] : ["--tools", options.tools];
  return { command: VIV, args: ["mcp", ...(isHere ? ["--here"] : []), ...projects, ...tools], env: Object.fromEntries(places) };
}

/** Lines that go and lines that come. */
function shownChange(before: string, after: string): string[] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  return [
    ...old.slice(start, old.length - end).map((line) => `- ${line}`),
    ...now.slice(start, now.length - end).map((line) => `+ ${line}`),
  ];
}

async function write(
  context: Context,
  name: string,
  change: { readonly before: string | undefined; readonly after: string | null },
): Promise<boolean> {
  const { screen, options, env } = context;
  const client = clientOf(name);
  const file = client.file(env);
  const { before, after } = change;
  screen.say(`${after === null ? "This removes" : "This changes"} ${file}:`);
  for (const line of shownChange(before ?? "", after ?? "")) screen.say(`  ${line}`);
  if (!options.yes && process.stdin.isTTY && !(await confirm(after === null ? "Remove it?" : "Write it?"))) {
    screen.print("Nothing was changed.");
    return false;
  }
  if (after === null) rmSync(file);
  else writeSettingsFile(file, after, before);
  return true;
}

async function install(context: Context, name: string, client: ChatClient): Promise<void> {
  const { screen, env, json } = context;
  const file = client.file(env);
  const before = readSettingsFile(file);
  const after = withEntry(client.format, file, before ?? "", [...client.place, SERVER_NAME], client.entry(startedBy(context, client)));
  if (before === after)
    return json ? screen.json({ client: name, file, changed: false }) : screen.print(`${client.title} is set up already. ${client.after}`);
  const paths = findPaths(env);
  preparePaths(paths);
  const earlier = readBefore(paths.home, name);
  // Of two installs, the first knows how the file was.
  const isSame = earlier !== undefined && before !== undefined && earlier.written === hashOf(before);
  if (!(await write(context, name, { before, after }))) return;
  keepBefore(paths.home, name, { file, text: isSame ? earlier.text : (before ?? null), written: hashOf(after) });
  if (json) return screen.json({ client: name, file, changed: true });
  screen.print(`${client.title} can use Vivarium now. ${client.after}`);
  if (!hasLogin(paths.config)) for (const line of FIRST) screen.print(line);
  screen.print('Then ask it, for example: "Use Vivarium to make a report with a chart from this table."');
  screen.print(`The way back: viv mcp install ${name} --undo`);
}

/** What the work itself needs, which a chat client can't do for the person. */
const FIRST = [
  "The work is done by an agent, which has to be there once. Type these two lines here, one after the other:",
  "  viv agents install claude    fetches it, which takes a minute or two",
  "  viv agents login claude      asks for your key from console.anthropic.com",
];

/** Whether the user has ever given an agent its login: that writes `models` into the config. */
function hasLogin(config: string): boolean {
  return Object.keys(readEntry("json", config, readSettingsFile(config) ?? "", ["models"]) ?? {}).length > 0;
}

/** As it was, where no other program has written since; else only our entry goes. */
async function undo(context: Context, name: string, client: ChatClient): Promise<void> {
  const { screen, env, json } = context;
  const file = client.file(env);
  const paths = findPaths(env);
  const now = readSettingsFile(file);
  const earlier = readBefore(paths.home, name);
  const place = [...client.place, SERVER_NAME];
  if (now === undefined || readEntry(client.format, file, now, place) === undefined) {
    if (json) screen.json({ client: name, file, changed: false });
    else screen.print(`${client.title} is not set up, so there is nothing to take back.`);
    return;
  }
  const isUntouched = earlier !== undefined && earlier.file === file && earlier.written === hashOf(now);
  const old = earlier?.text == null ? undefined : readEntry(client.format, file, earlier.text, place);
  const after = isUntouched ? earlier.text : withEntry(client.format, file, now, place, old);
  if (!(await write(context, name, { before: now, after }))) return;
  rmSync(beforeFile(paths.home, name), { force: true });
  if (json) screen.json({ client: name, file, changed: true });
  else screen.print(`${client.title} is as it was. ${client.after}`);
}

async function run(context: Context): Promise<void> {
  const [name = ""] = context.positionals;
  const client = clientOf(name);
  if (context.options.undo) return undo(context, name, client);
  await checkTools(context.options.tools);
  if (!context.options.print) return install(context, name, client);
  const place = [...client.place, SERVER_NAME];
  context.screen.say(`This belongs into ${client.file(context.env)}:`);
  context.screen.print(withEntry(client.format, "", "", place, client.entry(startedBy(context, client))).trimEnd());
}

export default command({
  name: "mcp install",
  summary: "Set a chat client up, so that it can use Vivarium",
  details:
    "It writes one entry into the client's own settings, after it has shown the change; everything else in the file stays as it is. On a terminal it asks first. --undo brings the file back.",
  examples: [
    ["viv mcp install claude-desktop", "for Claude Desktop"],
    ["viv mcp install cursor --project ~/shop", "and let it work on clones of this folder"],
    ["viv mcp install codex --print", "only show what belongs into the settings"],
    ["viv mcp install claude --undo", "take it back"],
  ],
  options: OPTIONS,
  positionals: [{ name: "CLIENT", summary: `The client: ${NAMES.join(", ")}`, completes: NAMES }],
  run,
});
