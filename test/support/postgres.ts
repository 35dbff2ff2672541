/** A real PostgreSQL of a test's own: a data folder of its own, on a port of loopback. */
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const DEBIAN = "/usr/lib/postgresql";

/** Folder of its programs, where Debian puts them; undefined where it is not installed. */
export function postgresPrograms(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).toSorted((one, other) => Number(other) - Number(one)) : [];
  return versions.map((version) => join(DEBIAN, version, "bin")).find((folder) => existsSync(join(folder, "initdb")));
}

export class Postgres {
  readonly port: number;
  /** Parent of its folders, open to its user. */
  readonly place: string;
  readonly data: string;
  readonly programs: string;
  /** It refuses to run as root. */
  readonly user = readFileSync("/etc/passwd", "utf8").includes("\npostgres:") ? "postgres" : "nobody";

  private constructor(port: number) {
    this.port = port;
    this.programs = postgresPrograms() ?? "";
    this.place = mkdtempSync(join(tmpdir(), "viv-postgres-"));
    chmodSync(this.place, 0o755);
    this.data = join(this.place, "main");
    mkdirSync(this.data, { mode: 0o700 });
    execFileSync("chown", [this.user, this.data]);
  }

  static start(port: number): Postgres {
    const made = new Postgres(port);
    made.#as(`initdb -N -A trust -U shop -E UTF8 --locale C -D ${made.data}`);
    made.#as(`pg_ctl -w -t 60 -D ${made.data} -l ${made.data}/log -o "${made.options}" start`);
    return made;
  }

  /** Of its command line: all that it needs to know besides its folder. */
  get options(): string {
    return `-p ${this.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c shared_buffers=16MB`;
  }

  /** How a client reaches it, also inside a clone. */
  get address(): string {
    return `-h 127.0.0.1 -p ${this.port} -U shop`;
  }

  #as(line: string): void {
    const { status, stderr } = spawnSync("runuser", ["-u", this.user, "--", "sh", "-c", `PATH=${this.programs}:$PATH; cd /; ${line}`], {
      encoding: "utf8",
      stdio: ["ignore", "ignore", "pipe"],
    });
    if (status !== 0) throw new Error(`${line}: ${stderr}`);
  }

  /** Shell line that asks a question and prints the bare answer. */
  line(sql: string): string {
    return `${this.programs}/psql ${this.address} -d postgres -v ON_ERROR_STOP=1 -qAtc "${sql}"`;
  }

  ask(sql: string): string {
    return execFileSync("sh", ["-c", this.line(sql)], { encoding: "utf8", cwd: "/" }).trim();
  }

  /** Number of its first process. */
  get pid(): number {
    return Number(readFileSync(join(this.data, "postmaster.pid"), "utf8").split("\n")[0]);
  }

  remove(): void {
    this.#as(`pg_ctl -w -m immediate -D ${this.data} stop`);
    rmSync(this.place, { recursive: true, force: true });
  }
}
