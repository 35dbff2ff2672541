/** Commands and options that people know from other tools, mostly Docker, and what to use here instead. */

const NO_IMAGES = "There are no images: every sandbox is a clone of this machine. `viv create` makes one.";
const NO_VOLUMES =
  "Nothing is mounted: the clone has this machine's files at their own paths, and what changes stays inside. `viv cp` and `viv promote` bring it out.";
const NO_PUBLISHING = "A port inside is opened while it is needed: `viv port SANDBOX 80 8080`.";
const BACKGROUND = "Make the sandbox, then leave the command running: `viv create --name try`, `viv exec -d try -- COMMAND`.";
const NO_PRIVILEGES =
  "A sandbox can't get rights on the real machine. Inside, `viv exec --user root SANDBOX -- COMMAND` runs as the clone's root.";
const NETWORK_MODES = "`viv create --network off` makes a clone without network, `viv network SANDBOX` says what one reaches.";

const COMMANDS: Readonly<Record<string, string>> = {
  image: NO_IMAGES,
  images: NO_IMAGES,
  pull: NO_IMAGES,
  push: "A change goes into the project, or to a remote as a branch: `viv promote SANDBOX --branch --push REMOTE`.",
  build: NO_IMAGES,
  tag: NO_IMAGES,
  login: "Logins are kept outside of sandboxes: `viv secret set NAME`, or `viv secret import`.",
  save: "`viv snapshot SANDBOX` keeps a state, `viv cp` brings files out.",
  export: "`viv cp SANDBOX:PATH .` brings files out, `viv diff SANDBOX` shows what changed.",
  commit: "`viv snapshot SANDBOX NAME` keeps a state; `viv promote SANDBOX` brings the change into the project.",
  container: "Leave the word out: `viv ls`, `viv rm SANDBOX`.",
  containers: "`viv ls` lists sandboxes.",
  sandboxes: "`viv ls` lists sandboxes.",
  list: "`viv ls` lists sandboxes.",
  volume: NO_VOLUMES,
  volumes: NO_VOLUMES,
  delete: "`viv rm SANDBOX` throws one away.",
  remove: "`viv rm SANDBOX` throws one away.",
  destroy: "`viv rm SANDBOX` throws one away.",
  restart: "`viv stop SANDBOX`, then `viv start SANDBOX`.",
  unpause: "`viv resume SANDBOX` lets a paused one go on.",
  rename: "A name stays; `viv fork SANDBOX --name NEW` goes on under another one.",
  update: "`viv limits SANDBOX` changes limits, `viv refresh SANDBOX` brings in what changed in reality.",
  top: "`viv ps SANDBOX` lists commands, `viv ps --processes SANDBOX` all processes.",
  stats: "`viv inspect SANDBOX` says what it uses.",
  info: "`viv status` is about the server, `viv doctor` about this machine.",
  system: "`viv prune` throws away what has ended; `viv status` says what is used.",
  wait: "`viv attach SANDBOX COMMAND` ends with the command and has its exit code.",
  history: "`viv events` says what happened, `viv ps --all SANDBOX` what ran.",
  bash: "`viv shell SANDBOX` opens a shell inside.",
  sh: "`viv shell SANDBOX` opens a shell inside.",
  ssh: "`viv shell SANDBOX` opens a shell inside.",
  enter: "`viv shell SANDBOX` opens a shell inside.",
  new: "`viv create` makes a sandbox.",
  apply: "`viv promote SANDBOX` brings its change into the project.",
  merge: "`viv promote SANDBOX` brings its change into the project; `viv refresh SANDBOX` the other way.",
  revert: "`viv rollback SANDBOX SNAPSHOT` is for a sandbox, `viv undo` for a promotion.",
  reset: "`viv rollback SANDBOX SNAPSHOT` brings a snapshot back.",
  restore: "`viv rollback SANDBOX SNAPSHOT` brings a snapshot back.",
  checkpoint: "`viv snapshot SANDBOX NAME` keeps a state.",
};

const OF_CREATING: Readonly<Record<string, string>> = {
  "-v": NO_VOLUMES,
  "--volume": NO_VOLUMES,
  "--mount": NO_VOLUMES,
  "-P": NO_PUBLISHING,
  "--publish": NO_PUBLISHING,
  "--expose": NO_PUBLISHING,
  "-d": BACKGROUND,
  "--detach": BACKGROUND,
  "--privileged": NO_PRIVILEGES,
  "--cap-add": NO_PRIVILEGES,
  "--net": NETWORK_MODES,
  "--image": NO_IMAGES,
  "--pull": NO_IMAGES,
  "--restart": "`viv start SANDBOX` brings back one that has ended; `viv extend SANDBOX --idle 0` keeps it from stopping by itself.",
};
const OF_CREATE: Readonly<Record<string, string>> = {
  ...OF_CREATING,
  "-e": "Variables are given to commands: `viv exec -e NAME=VALUE SANDBOX -- COMMAND`; yours are cloned already.",
  "--env": "Variables are given to commands: `viv exec -e NAME=VALUE SANDBOX -- COMMAND`; yours are cloned already.",
  "-i": "`viv shell SANDBOX` opens a shell inside.",
  "-t": "`viv shell SANDBOX` opens a shell inside.",
  "--rm": "`viv run -- COMMAND` throws its clone away by itself.",
};
const KILL = "`viv stop SANDBOX` asks and then ends; `viv kill SANDBOX COMMAND` ends one command.";

const OPTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  create: OF_CREATE,
  run: OF_CREATING,
  exec: { "-v": NO_VOLUMES, "--volume": NO_VOLUMES, "--privileged": NO_PRIVILEGES, "-p": NO_PUBLISHING, "--publish": NO_PUBLISHING },
  up: {
    "-d": "The server runs in the background by itself: `viv up`.",
    "--detach": "The server runs in the background by itself: `viv up`.",
  },
  down: { "-v": "`viv prune --all` throws sandboxes away; `viv down` leaves them running." },
  stop: { "-t": KILL, "--time": KILL, "-f": KILL, "--force": KILL },
  start: {
    "-a": "`viv start SANDBOX`, then `viv shell SANDBOX`: commands that ran are not started again.",
    "-i": "`viv start SANDBOX`, then `viv shell SANDBOX`: commands that ran are not started again.",
  },
  ls: {
    "-a": "`viv ls` lists all of them; `viv ls --state running` only those.",
    "--all": "`viv ls` lists all of them; `viv ls --state running` only those.",
  },
};

/** What to use instead of a command of another tool. */
export function adviceFor(command: string): string | undefined {
  return Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
}

/** The same of an option, as it was typed: "-v", "--volume". */
export function optionHabit(command: string, option: string): string | undefined {
  const known = Object.hasOwn(OPTIONS, command) ? OPTIONS[command] : undefined;
  return known !== undefined && Object.hasOwn(known, option) ? known[option] : undefined;
}

export function foreignCommands(): string[] {
  return [...Object.values(COMMANDS), ...Object.values(OPTIONS).flatMap((options) => Object.values(options))];
}
