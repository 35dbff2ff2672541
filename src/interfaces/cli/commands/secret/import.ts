import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { VivError } from "../../../../base/schema/errors.ts";
import { command } from "../../command.ts";
import { askProjects, givenProjects, PROJECT_OPTIONS } from "../../secret-projects.ts";

/** In a home folder; sandboxes find placeholders in these. */
const PLACES = [
  ".npmrc",
  ".netrc",
  ".pip/pip.conf",
  ".config/pip/pip.conf",
  ".git-credentials",
  ".config/git/credentials",
  ".cargo/credentials.toml",
  ".cargo/credentials",
];
const MOST_BYTES = 65_536;

export default command({
  name: "secret import",
  summary: "Keep the logins of package managers and git, each for its own host",
  details:
    "Reads .npmrc, .netrc, pip.conf, cargo's credentials and .git-credentials: the files named, or those of your home folder. Sandboxes made from then on find the same files with placeholders in them. Values are never shown. viv asks which projects may use new logins, unless an option says it.",
  examples: [
    ["viv secret import --dry-run", "what would be kept"],
    ["viv secret import", "those of your home folder"],
    ["viv secret import --all-projects ~/.npmrc", "one file, for every project"],
  ],
  options: { "dry-run": { type: "flag", summary: "Only show what was found" }, ...PROJECT_OPTIONS },
  positionals: [{ name: "FILE", summary: "A file with logins", optional: true, rest: "values", completes: "path" }],
  async run({ options, rest, json, screen, env, cwd, client }) {
    const dryRun = options["dry-run"];
    const home = env["HOME"] ?? homedir();
    const known = PLACES.map((name) => join(home, name));
    const named = rest.map((path) => resolve(cwd, path));
    const paths = named.length > 0 ? named : known.filter((path) => existsSync(path));
    const beside = paths.filter((path) => dirname(path).endsWith("/.cargo")).flatMap((path) => configs(dirname(path)));
    const files = [...new Set([...paths, ...beside])].map((path) => ({ path, text: read(path) }));
    const server = await client();
    const given = givenProjects(options, cwd);
    const found = dryRun || given === undefined ? await server.call("importSecrets", { files, dryRun: true }) : undefined;
    const isNew = found?.logins.some(({ state }) => state === "new") === true;
    const projects = given === undefined && isNew && !dryRun ? await askProjects("what is new", cwd) : given;
    const answer =
      dryRun && found !== undefined
        ? found
        : await server.call("importSecrets", { files, ...(projects === undefined ? {} : { projects }) });
    if (json) return screen.json(answer);
    if (answer.logins.length === 0) return screen.print("No logins were found.");
    screen.table(answer.logins, [
      { title: "SECRET", value: ({ secret }) => secret ?? "-" },
      { title: "HOST", value: ({ host }) => host ?? "-" },
      { title: "FOUND", value: ({ what }) => what, shrinks: true },
      { title: "FILE", value: ({ file }) => file, shrinks: true },
      { title: dryRun ? "WOULD BE" : "IS", value: ({ state, reason }) => (reason === null ? state : `${state}: ${reason}`), shrinks: true },
    ]);
    for (const path of named.filter((one) => !known.includes(one)))
      screen.print(`${path} is no settings file of your home folder: sandboxes that see it, see it as it is.`);
  },
});

function configs(folder: string): string[] {
  return ["config.toml", "config"].map((name) => join(folder, name)).filter((path) => existsSync(path));
}

function read(path: string): string {
  try {
    if (statSync(path).size > MOST_BYTES) throw new VivError("too_large", `${path} has more than ${MOST_BYTES} bytes.`);
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof VivError) throw error;
    throw new VivError("invalid_input", `${path} can't be read.`, { cause: error });
  }
}
