/** The worked examples of docs/MCP.md that an agent does: what it runs inside, and what has to come of it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync, crc32 } from "node:zlib";
import type { Client } from "@modelcontextprotocol/client";
import { use, type Fields } from "./agents/chat-lab.ts";
import { CHECKOUT } from "./compiled.ts";

export interface Call {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** Calls of an example, as the page shows them. */
export function examplesOf(page: string): ReadonlyMap<string, readonly Call[]> {
  const text = readFileSync(join(CHECKOUT, "docs", page), "utf8");
  const [, examples = ""] = text.split("\n## Examples\n");
  const sections = examples.split("\n### ").slice(1);
  return new Map(
    sections.map((section) => {
      const [title = ""] = section.split("\n");
      const blocks = [...section.matchAll(/```json\n([\s\S]*?)```/g)].map(([, json = ""]) => JSON.parse(json) as Call);
      return [title, blocks] as const;
    }),
  );
}

/** The calls of an example in order; SESSION and PROMOTION stand for what the calls before gave. */
export async function play(
  client: Client,
  calls: readonly Call[],
  change: (call: Call) => Fields = ({ arguments: given }) => given,
): Promise<Fields[]> {
  const answers: Fields[] = [];
  const known: Record<string, unknown> = {};
  for (const call of calls) {
    const filled = JSON.parse(
      JSON.stringify(change(call)).replaceAll(/"(SESSION|PROMOTION)"/g, (_, name: string) => JSON.stringify(known[name])),
    ) as Fields;
    let answer = await use(client, call.tool, filled);
    while (answer["status"] === "running" && call.tool !== "execute_task")
      answer = await use(client, "wait", { session_id: answer["session_id"] });
    known["SESSION"] = answer["session_id"] ?? known["SESSION"];
    known["PROMOTION"] = answer["promotion"] ?? known["PROMOTION"];
    answers.push(answer);
  }
  return answers;
}

export type PackageIndex = "pypi" | "npm";

export interface AgentExample {
  /** As the page calls it. */
  readonly title: string;
  /** What it is written in, where the page's example is done in two ways. */
  readonly way?: string;
  /** Packages that the agent installs. */
  readonly packages: readonly string[];
  /** The index that they come from. */
  readonly index?: PackageIndex;
  /** What it runs, in a shell. */
  readonly lines: readonly string[];
  /** The files that come of it, with what each has to be like. */
  readonly made: Readonly<Record<string, (content: Buffer) => boolean>>;
}

const python = (code: string): string => `.venv/bin/python - <<'EOF'\n${code}\nEOF`;
const install = (...packages: readonly string[]): string => `python3 -m venv .venv && .venv/bin/pip install -q ${packages.join(" ")}`;

export const SALES = "month,region,amount\n2026-01,north,120\n2026-01,south,80\n2026-02,north,150\n2026-02,south,60\n";

/** A picture in one colour. */
export function png(width: number, height: number): Buffer {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const frame = Buffer.alloc(body.length + 8);
    frame.writeUInt32BE(data.length);
    body.copy(frame, 4);
    frame.writeUInt32BE(crc32(body), body.length + 4);
    return frame;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const rows = Buffer.alloc((width * 3 + 1) * height, 0x7f);
  for (let row = 0; row < height; row += 1) rows[row * (width * 3 + 1)] = 0;
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    chunk("IHDR", head),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** Width and height of a WebP picture with losses. */
export function webpSize(content: Buffer): readonly number[] {
  if (content.toString("latin1", 0, 4) !== "RIFF" || content.toString("latin1", 8, 16) !== "WEBPVP8 ") return [];
  return [content.readUInt16LE(26) & 0x3fff, content.readUInt16LE(28) & 0x3fff];
}

const AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt";

export const AGENT_EXAMPLES: readonly AgentExample[] = [
  {
    title: "A table becomes a report with a chart",
    packages: ["pandas", "matplotlib"],
    index: "pypi",
    lines: [
      install("pandas", "matplotlib"),
      python(
        [
          "import pandas, matplotlib",
          "matplotlib.use('Agg')",
          "table = pandas.read_csv('sales_data.csv')",
          "sums = table.groupby('region')['amount'].sum().sort_values(ascending=False)",
          "axes = sums.plot.bar(title='Sales by region')",
          "axes.figure.savefig('chart.png')",
          "lines = [f'- {region}: {amount}' for region, amount in sums.items()]",
          "open('report.md', 'w').write('\\n'.join(['# Sales', f'Total: {table.amount.sum()}', *lines, '![chart](chart.png)', '']))",
        ].join("\n"),
      ),
    ],
    made: {
      "chart.png": (content) => content.toString("latin1", 1, 4) === "PNG" && content.length > 1000,
      "report.md": (content) => content.toString().includes("Total: 410") && content.toString().includes("- north: 270"),
    },
  },
  {
    title: "Data from the web becomes a clean table",
    packages: [],
    lines: [
      [
        "python3 - <<'EOF'",
        "import csv, json, os, urllib.request",
        "rows = json.load(urllib.request.urlopen(open('.address').read().strip()))",
        "clean = sorted({(row['date'].strip(), row['country'].strip().title(), int(row['cases'])) for row in rows if row.get('cases') not in (None, '', 'n/a')})",
        "out = csv.writer(open('clean.csv', 'w'))",
        "out.writerow(['date', 'country', 'cases'])",
        "out.writerows(clean)",
        "EOF",
      ].join("\n"),
    ],
    made: {
      "clean.csv": (content) =>
        content.toString().replaceAll("\r", "") === "date,country,cases\n2026-01-01,Chile,7\n2026-01-02,Chile,9\n2026-01-02,Peru,4\n",
    },
  },
  {
    title: "Pictures become smaller and change their format",
    packages: ["Pillow"],
    index: "pypi",
    lines: [
      install("Pillow"),
      python(
        [
          "import glob, os",
          "from PIL import Image",
          "for name in sorted(glob.glob('*.png') + glob.glob('*.jpg')):",
          "    Image.open(name).convert('RGB').resize((800, 600)).save(os.path.splitext(name)[0] + '.webp', quality=80)",
        ].join("\n"),
      ),
    ],
    made: {
      "img1.webp": (content) => webpSize(content).join() === "800,600",
      "img2.webp": (content) => webpSize(content).join() === "800,600",
    },
  },
  {
    title: "Pictures become smaller and change their format",
    way: "with a Node program",
    packages: ["sharp"],
    index: "npm",
    lines: [
      // npm brings its own list of authorities; some networks have one of their own, which the system knows.
      `test ! -e ${AUTHORITIES} || echo cafile=${AUTHORITIES} > .npmrc`,
      "npm install --no-audit --no-fund sharp",
      [
        "node --input-type=module - <<'EOF'",
        "import { readdirSync } from 'node:fs';",
        "import sharp from 'sharp';",
        "for (const name of readdirSync('.').filter((file) => /\\.(png|jpg)$/.test(file)))",
        "  await sharp(name).resize(800, 600, { fit: 'fill' }).webp({ quality: 80 }).toFile(name.replace(/\\.\\w+$/, '.webp'));",
        "EOF",
      ].join("\n"),
    ],
    made: {
      "img1.webp": (content) => webpSize(content).join() === "800,600",
      "img2.webp": (content) => webpSize(content).join() === "800,600",
    },
  },
];

/** What the web server of the test has: repeated, unclean and incomplete rows. */
export const WEB_ROWS = [
  { date: "2026-01-02 ", country: "chile", cases: "9" },
  { date: "2026-01-01", country: "Chile", cases: 7 },
  { date: "2026-01-01", country: "Chile", cases: 7 },
  { date: "2026-01-02", country: " PERU", cases: "4" },
  { date: "2026-01-03", country: "Peru", cases: "n/a" },
];
