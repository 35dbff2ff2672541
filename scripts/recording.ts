/** The demo's output as a drawing that plays: what a terminal shows, frame by frame, as one SVG without a script. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { shellLine } from "../src/base/schema/shell-words.ts";

const COLUMNS = 100;
const ROWS = 26;
const LINE_PX = 17;
const LETTER_PX = 7.85;
const PADDING_PX = 16;
/** A pause is shown as long as it was, up to this. */
const LONGEST_PAUSE_MS = 1_400;
/** What comes within this time is one frame. */
const FRAME_MS = 120;
const LAST_MS = 6_000;

interface Chunk {
  readonly atMs: number;
  readonly text: string;
}

interface Letter {
  readonly letter: string;
  readonly style: string;
}

interface Frame {
  readonly rows: readonly string[];
  readonly ms: number;
}

const COLOURS: Readonly<Record<string, string>> = { 31: "r", 32: "g", 33: "y", 34: "b", 35: "m", 36: "c", 90: "d" };

/** As much of a terminal as Vivarium's own drawing uses. */
class Screen {
  readonly #lines: Letter[][] = [[]];
  #row = 0;
  #column = 0;
  #style = new Set<string>();

  write(text: string): void {
    // oxlint-disable-next-line no-control-regex -- exactly those are looked for
    for (const [token] of text.matchAll(/\u001b\[[0-?]*[@-~]|[^]/gu)) this.#take(token);
  }

  /** The last lines, each as text of an SVG. */
  rows(): readonly string[] {
    return this.#lines.slice(-ROWS).map(drawn);
  }

  #take(token: string): void {
    const line = (this.#lines[this.#row] ??= []);
    if (token === "\n") {
      this.#row += 1;
      this.#column = 0;
      this.#lines[this.#row] ??= [];
    } else if (token === "\r") this.#column = 0;
    else if (token.endsWith("m") && token.startsWith("\u001b")) this.#dress(token.slice(2, -1));
    else if (token.endsWith("A") && token.startsWith("\u001b")) this.#row = Math.max(0, this.#row - Number(token.slice(2, -1) || 1));
    else if (token === "\u001b[K") line.length = Math.min(line.length, this.#column);
    else if (token === "\u001b[J") {
      line.length = Math.min(line.length, this.#column);
      this.#lines.length = this.#row + 1;
    } else if (!token.startsWith("\u001b")) this.#put(line, token);
  }

  #put(line: Letter[], letter: string): void {
    if (this.#column >= COLUMNS) {
      this.#take("\n");
      this.#put(this.#lines[this.#row] ?? [], letter);
      return;
    }
    while (line.length < this.#column) line.push({ letter: " ", style: "" });
    line[this.#column] = { letter, style: [...this.#style].join(" ") };
    this.#column += 1;
  }

  #dress(codes: string): void {
    for (const code of codes === "" ? ["0"] : codes.split(";")) {
      const colour = COLOURS[code];
      if (code === "0") this.#style.clear();
      else if (code === "1") this.#style.add("s");
      else if (code === "2") this.#style.add("d");
      else if (code === "22") for (const weight of ["s", "d"]) this.#style.delete(weight);
      else if (code === "39") for (const other of Object.values(COLOURS)) this.#style.delete(other);
      else if (colour !== undefined) this.#style.add(colour);
    }
  }
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Letters of one style beside each other are one span. */
function drawn(line: readonly Letter[]): string {
  const spans: { style: string; text: string }[] = [];
  for (const { letter, style } of line.slice(0, COLUMNS)) {
    const last = spans.at(-1);
    if (last?.style === style) last.text += letter;
    else spans.push({ style, text: letter });
  }
  return spans
    .map(({ style, text }) => (style === "" ? escaped(text) : `<tspan class="${style}">${escaped(text)}</tspan>`))
    .join("")
    .trimEnd();
}

async function record(root: string): Promise<readonly Chunk[]> {
  const demo = shellLine([process.execPath, join(root, "scripts", "demo.ts")]);
  const line = `stty cols ${COLUMNS} rows ${ROWS}; exec ${demo}`;
  const child = spawn("script", ["-qfec", line, "/dev/null"], { env: { ...process.env, TERM: "xterm-256color" } });
  const chunks: Chunk[] = [];
  const began = performance.now();
  child.stdout.on("data", (data: Buffer) => chunks.push({ atMs: performance.now() - began, text: data.toString() }));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`the demo ended with ${code}`);
  return chunks;
}

function framesOf(chunks: readonly Chunk[]): readonly Frame[] {
  const screen = new Screen();
  const frames: Frame[] = [];
  for (const [index, { atMs, text }] of chunks.entries()) {
    screen.write(text);
    const next = chunks[index + 1]?.atMs;
    if (next !== undefined && next - atMs < FRAME_MS) continue;
    frames.push({ rows: screen.rows(), ms: next === undefined ? LAST_MS : Math.min(next - atMs, LONGEST_PAUSE_MS) });
  }
  return frames;
}

const STYLE = `
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d6d9de;white-space:pre}
.s{font-weight:700;fill:#fff}.d{fill:#8b929c}.r{fill:#ff8f88}.g{fill:#6ddc8f}.y{fill:#f2c55c}.b{fill:#86b8ff}.m{fill:#d8a3ff}.c{fill:#6fd6d6}`;

/** All frames lie below each other; the window moves from one to the next. Each different row is drawn once. */
function drawing(frames: readonly Frame[]): string {
  const width = Math.round(COLUMNS * LETTER_PX) + 2 * PADDING_PX;
  const height = ROWS * LINE_PX + 2 * PADDING_PX;
  const whole = frames.reduce((sum, { ms }) => sum + ms, 0);
  const names = new Map<string, string>();
  for (const row of frames.flatMap(({ rows }) => rows)) if (row !== "" && !names.has(row)) names.set(row, `r${names.size}`);
  let passed = 0;
  const steps = frames.map(({ ms }, index) => {
    const at = ((passed / whole) * 100).toFixed(2);
    passed += ms;
    return `${at}%{transform:translateY(${-index * height}px)}`;
  });
  const last = -(frames.length - 1) * height;
  const uses = frames.map(({ rows }, index) =>
    rows
      .map((row, line) =>
        row === "" ? "" : `<use href="#${names.get(row) ?? ""}" y="${index * height + PADDING_PX + 12 + line * LINE_PX}"/>`,
      )
      .join(""),
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="The demo in a terminal">
<style>${STYLE}
#f{animation:play ${(whole / 1000).toFixed(1)}s step-end infinite}
@keyframes play{${steps.join("")}}
@media (prefers-reduced-motion:reduce){#f{animation:none;transform:translateY(${last}px)}}
</style>
<defs>${[...names].map(([row, name]) => `<text id="${name}" x="${PADDING_PX}">${row}</text>`).join("\n")}</defs>
<rect width="${width}" height="${height}" rx="8" fill="#16181d"/>
<g id="f">${uses.join("\n")}</g>
</svg>
`;
}

/** Runs the demo, and answers with its drawing. */
export async function recordDemo(root: string): Promise<string> {
  return drawing(framesOf(await record(root)));
}
