/** Package registries that settings of the machine name: npm's, pip's and apt's, those of the project among them. Read in reality alone. */
import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { readRegular } from "../../base/host/regular-file.ts";
import { parseAuthority, type Authority } from "./host.ts";

const APT = "/etc/apt";
const MOST_BYTES = 256 * 1024;
const MOST_LISTS = 64;
const ADDRESS = /\b(https?):\/\/(?:[^\s/@"']*@)?((?:\[[0-9a-f:.]+\]|[^\s/:"'@\]]+)(?::\d{1,5})?)/gi;
const COMMENT = /^\s*[#;].*$/gm;
const USUAL_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443 };

export interface NamedRegistry extends Authority {
  readonly file: string;
  /** Whether the file is one of the project's, which others may have written. */
  readonly ofProject: boolean;
}

/** The first file that names this host and port; undefined if none does. */
export async function registryFile(project: string, home: string, host: string, port: number): Promise<string | undefined> {
  for await (const named of namedRegistries(project, home)) if (named.host === host && named.port === port) return named.file;
  return undefined;
}

/** All that is named, file by file. */
export async function* namedRegistries(project: string, home: string): AsyncGenerator<NamedRegistry, void, void> {
  for (const file of await settings(project, home)) {
    const text = (await readRegular(file, MOST_BYTES))?.toString("utf8").replaceAll(COMMENT, "") ?? "";
    const ofProject = !relative(project, file).startsWith("../");
    for (const [, scheme = "", place = ""] of text.matchAll(ADDRESS)) {
      const named = parseAuthority(place, USUAL_PORTS[scheme.toLowerCase()]);
      if (named !== undefined) yield { ...named, file, ofProject };
    }
  }
}

async function settings(project: string, home: string): Promise<string[]> {
  const lists = await readdir(join(APT, "sources.list.d")).catch(() => []);
  return [
    ...[".npmrc", "pip.conf"].map((name) => join(project, name)),
    ...[".npmrc", ".config/pip/pip.conf", ".pip/pip.conf"].map((name) => join(home, name)),
    "/etc/npmrc",
    "/etc/pip.conf",
    join(APT, "sources.list"),
    // As apt itself does, which leaves copies of editors alone.
    ...lists
      .filter((name) => /\.(list|sources)$/.test(name))
      .slice(0, MOST_LISTS)
      .map((name) => join(APT, "sources.list.d", name)),
  ];
}
