/** Packages and repositories as real programs fetch them, made on the spot. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";

/** Files of a web server, by host and path. */
export type Files = Map<string, Buffer | string>;

/** Answers with the file of the host and path that were asked for. */
export function serveFile(files: Files, request: IncomingMessage, response: ServerResponse): void {
  const host = (request.headers.host ?? "").split(":")[0] ?? "";
  const found = files.get(host + decodeURIComponent((request.url ?? "").split("?")[0] ?? ""));
  if (found === undefined) response.writeHead(404).end();
  else response.writeHead(200, { "content-type": request.url?.endsWith("/") === true ? "text/html" : "application/json" }).end(found);
}

/** A registry at this address with one package, `demo`. */
export function publishNpm(files: Files, place: string, url: string): void {
  const host = new URL(url).hostname;
  const tarball = packNpm(place);
  const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
  const version = { name: "demo", version: "1.0.0", dist: { tarball: `${url}/demo/-/demo-1.0.0.tgz`, integrity } };
  files.set(`${host}/demo`, JSON.stringify({ name: "demo", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } }));
  files.set(`${host}/demo/-/demo-1.0.0.tgz`, tarball);
}

/** An index with one wheel, `demo`. */
export function publishWheel(files: Files, place: string, host: string): void {
  files.set(`${host}/simple/demo/`, `<a href="/demo-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>`);
  files.set(`${host}/demo-1.0-py3-none-any.whl`, packWheel(place));
}

/** A sparse registry at this address with one crate, `demo`. */
export function publishCrate(files: Files, place: string, url: string): void {
  const host = new URL(url).hostname;
  const folder = join(place, "crate", "demo-1.0.0");
  mkdirSync(join(folder, "src"), { recursive: true });
  writeFileSync(join(folder, "Cargo.toml"), '[package]\nname = "demo"\nversion = "1.0.0"\nedition = "2021"\n');
  writeFileSync(join(folder, "src", "lib.rs"), "");
  const crate = execFileSync("tar", ["-cz", "-C", join(place, "crate"), "demo-1.0.0"]);
  const cksum = createHash("sha256").update(crate).digest("hex");
  files.set(`${host}/index/config.json`, JSON.stringify({ dl: `${url}/crates` }));
  files.set(`${host}/index/de/mo/demo`, JSON.stringify({ name: "demo", vers: "1.0.0", deps: [], cksum, features: {}, yanked: false }));
  files.set(`${host}/crates/demo/1.0.0/download`, crate);
}

/** A bare repository `repository.git` with one commit, below the folder. */
export function makeRepository(place: string): void {
  const work = join(place, "work");
  mkdirSync(work);
  writeFileSync(join(work, "file"), "committed\n");
  const run = (...args: string[]): Buffer =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], { cwd: work });
  run("init", "-q", ".");
  run("add", ".");
  run("commit", "-qm", "first");
  execFileSync("git", ["clone", "-q", "--bare", work, join(place, "repository.git")]);
}

function packNpm(place: string): Buffer {
  const folder = join(place, "npm", "package");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "demo", version: "1.0.0", main: "index.js" }));
  writeFileSync(join(folder, "index.js"), `module.exports = "from the registry";`);
  return execFileSync("tar", ["-cz", "-C", join(place, "npm"), "package"]);
}

function packWheel(place: string): Buffer {
  const folder = join(place, "wheel");
  const info = join(folder, "demo-1.0.dist-info");
  mkdirSync(info, { recursive: true });
  writeFileSync(join(folder, "demo.py"), `said = "from the index"\n`);
  writeFileSync(join(info, "METADATA"), "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n");
  writeFileSync(join(info, "WHEEL"), "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n");
  writeFileSync(
    join(info, "RECORD"),
    "demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n",
  );
  const file = join(place, "demo.whl");
  execFileSync("python3", ["-c", "import shutil,sys; shutil.make_archive(sys.argv[1], 'zip', sys.argv[2])", file, folder]);
  return readFileSync(`${file}.zip`);
}

export function packDeb(place: string): { name: string; deb: Buffer; index: string } {
  const folder = join(place, "deb");
  mkdirSync(join(folder, "DEBIAN"), { recursive: true });
  const control =
    "Package: viv-demo\nVersion: 1.0\nArchitecture: all\nMaintainer: test <test@example.com>\nDescription: from the archive\n";
  writeFileSync(join(folder, "DEBIAN", "control"), control);
  execFileSync("dpkg-deb", ["--build", "--root-owner-group", folder, place], { stdio: "pipe" });
  const name = readdirSync(place).find((entry) => entry.endsWith(".deb")) ?? "";
  const deb = readFileSync(join(place, name));
  const hash = createHash("sha256").update(deb).digest("hex");
  return { name, deb, index: `${control}Filename: ./${name}\nSize: ${deb.length}\nSHA256: ${hash}\n\n` };
}
