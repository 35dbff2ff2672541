/** Numbers, times and paths as people read them; the same words as the command line's. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** "12 s", "4 min", "3 h", "2 days". */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.round(ms / 1000)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min${ms < 10 * MINUTE ? ` ${Math.floor((ms % MINUTE) / 1000)} s` : ""}`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h${ms < 10 * HOUR ? ` ${Math.floor((ms % HOUR) / MINUTE)} min` : ""}`;
  return `${Math.floor(ms / DAY)} days`;
}

/** "now", "5 min ago". */
export function ago(iso: string, now: number): string {
  const ms = now - Date.parse(iso);
  if (ms < 5_000) return "now";
  if (ms < MINUTE) return `${Math.floor(ms / 1000)} s ago`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ago`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h ago`;
  return `${Math.floor(ms / DAY)} days ago`;
}

export function clock(iso: string): string {
  return new Date(iso).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ""}`;
}

export function dollars(amount: number): string {
  return amount === 0 ? "$0" : amount < 0.01 ? "< $0.01" : `$${amount.toFixed(2)}`;
}

export function compact(count: number): string {
  if (count < 1000) return String(count);
  return count < 1_000_000 ? `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** The last folder of a path. */
export function baseName(path: string): string {
  return path.split("/").findLast((part) => part !== "") ?? path;
}

/** The first line of a task, for a title. */
export function firstLine(text: string): string {
  return text.trim().split("\n")[0] ?? "";
}

/** "Chrome 130 on Linux", of what a browser calls itself; the whole of that where it is none of the usual ones. */
export function browserName(text: string): string {
  const program = [/(?:Headless)?(Edg|OPR|Firefox|Chrome)\/(\d+)/, /(Safari)\/(\d+)/]
    .map((pattern) => pattern.exec(text))
    .find((one) => one !== null);
  const system = ["Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux"].find((name) => text.includes(name));
  return program === undefined ? text : `${program[1] ?? ""} ${program[2] ?? ""}${system === undefined ? "" : ` on ${system}`}`;
}

/** Short, and still to be found by. */
export function shortId(id: string): string {
  return id.length > 12 ? `${id.slice(0, 11)}…` : id;
}
