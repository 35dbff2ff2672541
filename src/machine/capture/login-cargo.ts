/** Cargo's credentials and settings, which are TOML. */
import { parse, stringify, type TomlTable, type TomlValue } from "smol-toml";
import { withoutLogin } from "./addresses.ts";
import { looksSecret } from "./environment.ts";
import type { Login, Read } from "./logins.ts";

const CRATES = "crates.io";
/** The way to log in that reads the file of credentials, in which only placeholders stand. */
const BY_TOKEN = "cargo:token";
const PROVIDERS = new Set(["global-credential-providers", "credential-provider"]);
const SECRET_KEY = /token|secret|passw|credential|(^|[-_])key$/i;

/** Undefined where it is no TOML. `beside` are cargo's configs, which say where its registries are. */
export function cargo(text: string, beside: readonly string[]): Read | undefined {
  const credentials = parsed(text);
  if (credentials === undefined) return undefined;
  const places = new Map(beside.flatMap((config) => [...tablesOf(parsed(config) ?? {})]));
  const logins: Login[] = [];
  const add = (name: string, table: TomlValue | undefined, host: string): void => {
    const token = isTable(table) ? table["token"] : undefined;
    if (typeof token === "string") logins.push({ host, detail: name, what: `token of ${name}`, value: token });
  };
  add("crates-io", credentials["registry"], CRATES);
  for (const [name, table] of tablesOf(credentials)) {
    // Which host it is stands in another file: without it the login is read all the same, and can't be kept.
    const place = places.get(name) ?? table;
    add(name, table, name === "crates-io" ? CRATES : hostOf(isTable(place) ? place["index"] : undefined));
  }
  return {
    logins,
    unusable: [],
    shown: (placeholders) =>
      logins
        .flatMap(({ detail }, index) => {
          const placeholder = placeholders[index];
          const table = detail === "crates-io" ? "[registry]" : `[registries.${JSON.stringify(detail)}]`;
          return placeholder === undefined ? [] : `${table}\ntoken = ${JSON.stringify(placeholder)}\n`;
        })
        .join(""),
  };
}

/** Where registries are, how to build: all but what logs in. Undefined where it is no TOML. */
export function cargoSettings(text: string): string | undefined {
  const settings = parsed(text);
  return settings === undefined ? undefined : stringify(cleaned(settings));
}

function cleaned(table: TomlTable, isEnvironment = false): TomlTable {
  const kept = Object.entries(table).flatMap(([key, value]): [string, TomlValue][] => {
    if (PROVIDERS.has(key)) return [value].flat().every((each) => each === BY_TOKEN) ? [[key, value]] : [];
    if (isEnvironment ? isSecretVariable(key, value) : SECRET_KEY.test(key)) return [];
    const clean = cleanValue(value, key === "env");
    return clean === undefined ? [] : [[key, clean]];
  });
  return Object.fromEntries(kept);
}

/** `NAME = "value"` or `NAME = { value = "value" }`. */
function isSecretVariable(name: string, value: TomlValue): boolean {
  const text = isTable(value) ? value["value"] : value;
  return looksSecret(name, typeof text === "string" ? text : "");
}

function cleanValue(value: TomlValue, isEnvironment: boolean): TomlValue | undefined {
  if (typeof value === "string") return withoutLogin(value);
  if (Array.isArray(value)) return value.map((each) => cleanValue(each, false)).filter((each) => each !== undefined);
  return isTable(value) ? cleaned(value, isEnvironment) : value;
}

function parsed(text: string): TomlTable | undefined {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

function isTable(value: TomlValue | undefined): value is TomlTable {
  return typeof value === "object" && !Array.isArray(value) && !(value instanceof Date);
}

function tablesOf(file: TomlTable): Map<string, TomlValue> {
  const registries = file["registries"];
  return new Map(isTable(registries) ? Object.entries(registries) : []);
}

function hostOf(index: TomlValue | undefined): string {
  return typeof index === "string" ? (URL.parse(index.replace(/^(sparse|registry)\+/, ""))?.host ?? "") : "";
}
