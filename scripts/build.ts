/** Builds what the published package carries: the program, the pages, the SDK with its types, and the static programs of native/ for each processor a compiler is here for. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundle, bundleSdk } from "./bundle.ts";
import { writeDeclarations } from "./sdk-declarations.ts";

const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");
const own = `linux-${process.arch}`;
const compilers: Record<string, string> = { "linux-x64": "x86_64-linux-gnu-gcc", "linux-arm64": "aarch64-linux-gnu-gcc" };

/** A program that leans on this machine's libc would not run on others, so only static ones are packed. */
function isStatic(program: string): boolean {
  return !/^\s*INTERP/m.test(spawnSync("readelf", ["-lW", program], { encoding: "utf8" }).stdout);
}

function buildNative(platform: string, compiler: string): void {
  const work = mkdtempSync(join(tmpdir(), "vivarium-cell-"));
  try {
    const environment = { ...process.env, CC: compiler, CFLAGS: "-O2 -s" };
    execFileSync("bash", [join(root, "scripts", "native-without-make.sh"), work], { env: environment, stdio: ["ignore", 2, 2] });
    const target = join(dist, "native", platform);
    mkdirSync(target, { recursive: true });
    for (const name of ["cell", "front"]) {
      const program = join(work, name);
      if (!isStatic(program)) throw new Error(`${compiler} has no static libc, so the package would carry a ${name} that runs only here`);
      cpSync(program, join(target, name));
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function has(program: string): boolean {
  return spawnSync("sh", ["-c", `command -v "$1"`, "sh", program]).status === 0;
}

function isContent(path: string): boolean {
  return !path.endsWith(".setup-stamp");
}

rmSync(dist, { recursive: true, force: true });
await bundle(join(dist, "program"));
cpSync(join(root, "build", "web"), join(dist, "web"), { recursive: true, filter: isContent });
if (existsSync(join(root, "build", "lab"))) cpSync(join(root, "build", "lab"), join(dist, "lab"), { recursive: true, filter: isContent });
else console.error("No build/lab: the package carries no JupyterLab; `viv notebook` needs the machine's own.");
await bundleSdk(join(dist, "sdk"));
writeDeclarations(join(dist, "sdk"));
for (const [platform, crossCompiler] of Object.entries(compilers)) {
  const compiler = platform === own ? (process.env["CC"] ?? "cc") : crossCompiler;
  if (has(compiler)) buildNative(platform, compiler);
  else console.error(`No ${compiler}: the package carries no cell for ${platform}; it has to be built there, with make in native/.`);
}
