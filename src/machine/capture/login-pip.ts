/** A pip.conf, read as Python's configparser does. */
import { isLoginKey, readAddresses } from "./addresses.ts";
import type { Read } from "./logins.ts";

const NOTHING: Read = { logins: [], unusable: [], shown: () => undefined };

interface Line {
  readonly read: Read;
  readonly before: string;
}

/** Undefined where configparser would refuse it, too. */
export function pip(text: string): Read | undefined {
  const lines: Line[] = [];
  let key: string | undefined;
  let section: string | undefined;
  for (const content of text.split(/\r?\n/)) {
    if (/^\s*([#;].*)?$/.test(content)) continue;
    const more = key === undefined ? undefined : /^\s+(\S.*)$/.exec(content)?.[1];
    const header = /^\[([^\]]+)\]\s*$/.exec(content)?.[1];
    if (more !== undefined) lines.push(lineOf(key ?? "", "    ", more));
    else if (header !== undefined) {
      section = header;
      key = undefined;
      lines.push({ before: `[${header}]`, read: { ...NOTHING, shown: () => "" } });
    } else {
      const [, name, value = ""] = /^\s*([^\s=:][^=:]*?)\s*[=:]\s*(.*)$/.exec(content) ?? [];
      if (name === undefined || section === undefined) return undefined;
      key = name;
      lines.push(lineOf(name, `${name} = `, value.trimEnd()));
    }
  }
  return {
    logins: lines.flatMap(({ read }) => read.logins),
    unusable: lines.flatMap(({ read }) => read.unusable),
    shown: (placeholders) => {
      const given = [...placeholders];
      const shown = lines.map(({ before, read }) => ({ before, text: read.shown(given.splice(0, read.logins.length)) }));
      return shown.flatMap(({ before, text: value }) => (value === undefined ? [] : `${before}${value}`.trimEnd() + "\n")).join("");
    },
  };
}

/** The way through a proxy is Vivarium's own: a login for that is not kept. */
function lineOf(key: string, before: string, value: string): Line {
  const read = isLoginKey(key) ? NOTHING : readAddresses(value);
  return { before, read: key.toLowerCase() === "proxy" ? { ...NOTHING, shown: () => read.shown([]) } : read };
}
