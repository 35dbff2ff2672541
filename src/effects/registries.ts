/** Package registries that settings of the machine name: npm's, pip's and apt's, those of the project among them. Read in reality alone. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { readRegular } from "../host/regular-file.ts";

const APT = "/etc/apt";
const MOST_BYTES = 256 * 1024;
const MOST_LISTS = 64;
const ADDRESS = /\b(https?):\/\/(?:[^\s/@"']*@)?(\[[0-9a-f:.]+\]|[^\s/:"'@\]]+)(?::(\d{1,5}))?/gi;
const USUAL_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443 };

/** The first file that names this host and port; undefined if none does. */
export async function registryFile(project: string, home: string, host: string, port: number): Promise<string | undefined> {
  for (const file of await settings(project, home)) {
    const text = (await readRegular(file, MOST_BYTES))?.toString("utf8") ?? "";
    for (const [, scheme = "", name = "", given] of text.matchAll(ADDRESS)) {
      const named = given === undefined ? USUAL_PORTS[scheme.toLowerCase()] : Number(given);
      if (named === port && name.toLowerCase().replace(/^\[|\]$/g, "") === host) return file;
    }
  }
  return undefined;
}

async function settings(project: string, home: string): Promise<string[]> {
  const lists = await readdir(join(APT, "sources.list.d")).catch(() => []);
  return [
    ...[".npmrc", "pip.conf"].map((name) => join(project, name)),
    ...[".npmrc", ".config/pip/pip.conf", ".pip/pip.conf"].map((name) => join(home, name)),
    "/etc/npmrc",
    "/etc/pip.conf",
    join(APT, "sources.list"),
    ...lists.slice(0, MOST_LISTS).map((name) => join(APT, "sources.list.d", name)),
  ];
}
