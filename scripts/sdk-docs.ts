/** The reference of the SDK, docs/sdk/reference.md, from its published types. `node scripts/sdk-docs.ts` writes it; a test compares. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { declarationsIn, renderDeclarations, type Declaration } from "./sdk-declarations.ts";

const FOLDER = join(import.meta.dirname, "..", "docs", "sdk");
const NOTE = "<!-- Made from the types; see scripts/sdk-docs.ts. -->\n";

/** The classes in the order in which a reader meets them. What they take and give follows each. */
const CLASSES = [
  "Sandbox",
  "Execution",
  "Files",
  "Port",
  "PortSocket",
  "LocalPort",
  "CodeContext",
  "Desktop",
  "Experiment",
  "Attempt",
  "Promotion",
  "Task",
  "Approvals",
];
const OPTIONS = [
  "CallOptions",
  "CreateOptions",
  "CommandLine",
  "CommandOptions",
  "RunOptions",
  "RunResult",
  "ExecOptions",
  "Output",
  "ForkOptions",
  "FileOptions",
  "WriteOptions",
  "WatchOptions",
  "FileChange",
  "CopyReport",
  "FetchOptions",
  "CodeOptions",
  "CodeResult",
  "Picture",
  "DesktopOptions",
  "Point",
  "ClickOptions",
  "ScrollOptions",
  "ChangeOptions",
  "Approach",
  "TryOptions",
  "PromoteOptions",
  "TaskOptions",
  "TaskResult",
  "EventOptions",
];

interface Member {
  readonly signature: string;
  readonly about: string;
}

/** Text of a comment, in one line. */
function aboutOf(text: string): string {
  return (/^\s*\/\*\*(.*?)\*\//s.exec(text)?.[1] ?? "").replaceAll(/\s+\*?\s*/g, " ").trim();
}

/** Members as the compiler writes them: two columns in, each with its comment before it. */
export function membersOf(text: string): Member[] {
  const body = text.slice(text.indexOf("{\n") + 2, text.lastIndexOf("}"));
  const members: Member[] = [];
  let about = "";
  let lines: string[] = [];
  for (const line of body.split("\n")) {
    if (line.startsWith("  /**")) about = aboutOf(line);
    else if (line.trim() !== "") lines.push(line.trim());
    // A member ends with a line that is no deeper than its first.
    if (lines.length === 0 || !/^ {2}\S.*;$/.test(line)) continue;
    members.push({ signature: lines.join(" ").replace(/;$/, "").replaceAll("; }", " }"), about });
    about = "";
    lines = [];
  }
  return members.filter(({ signature }) => !/^(#private|\[Symbol\.|constructor)/.test(signature));
}

const cell = (text: string): string => text.replaceAll("|", "\\|");

function classSection(name: string, texts: readonly string[]): string {
  const rows = texts.flatMap(membersOf).map(({ signature, about }) => `| \`${cell(signature)}\` | ${cell(about)} |`);
  const about = aboutOf(texts[0] ?? "");
  return [`## ${name}`, "", about, "", "| member | |", "|---|---|", ...rows, ""].join("\n");
}

function codeSection(title: string, texts: readonly string[]): string {
  return [`## ${title}`, "", "```ts", texts.map((text) => text.replaceAll(/^export (?:declare )?/gm, "")).join("\n\n"), "```", ""].join(
    "\n",
  );
}

/** The page of the classes, from the published declarations by file. */
export function renderReference(files: ReadonlyMap<string, string>): string {
  const shared = declarationsIn(files.get("shared.d.ts") ?? "");
  const entry = declarationsIn(files.get("index.d.ts") ?? "");
  const text = (name: string, among: readonly Declaration[] = shared): string => {
    const found = among.find((declaration) => declaration.name === name);
    if (found === undefined) throw new Error(`the SDK has no ${name}`);
    return found.text;
  };
  const reference = [
    `${NOTE}# Reference of the SDK\n`,
    "[What it is for, by examples](../SDK.md) · [data types](types.md) · [operations of `viv.call`](operations.md)\n",
    classSection("Vivarium", [text("Vivarium", entry), text("VivariumClient")]),
    codeSection("new Vivarium(options)", [text("VivariumOptions", entry), text("Where", entry)]),
    ...CLASSES.map((name) => classSection(name, [text(name)])),
    codeSection(
      "VivariumError",
      shared.filter(({ name }) => name === "VivariumError").map((one) => one.text),
    ),
    codeSection(
      "Options and answers",
      OPTIONS.map((name) => text(name)),
    ),
  ];
  return reference.join("\n");
}

/** The pages of what the contracts say, from the plain types by file. */
export function renderDataPages(types: ReadonlyMap<string, string>): Map<string, string> {
  const operations = declarationsIn(types.get("operations.ts") ?? "");
  const data = [...types].filter(([name]) => name !== "operations.ts").flatMap(([, text]) => declarationsIn(text));
  return new Map([
    [
      "types.md",
      `${NOTE}# Data types of the SDK\n\n${codeSection(
        "As the server takes and answers them",
        data.map(({ text }) => text),
      )}`,
    ],
    ["operations.md", operationsPage(operations[0]?.text ?? "")],
  ]);
}

function operationsPage(text: string): string {
  const rows = membersOf(text).map(({ signature, about }) => {
    const [, name = "", input = "", output = ""] = /^(\w+): \{ input: (.*); output: (\w+);? \}$/.exec(signature) ?? [];
    return `| \`${name}\` | ${about} | \`${input}\` | \`${output}\` |`;
  });
  return [
    `${NOTE}# Operations of \`viv.call\``,
    "",
    "| operation | what it does | input | answer |",
    "|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

if (import.meta.main) {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, "reference.md"), renderReference(renderDeclarations()));
}
