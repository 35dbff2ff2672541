/**
 * Makes the pictures of the README: the demo's project and attempts in a server of its own, seen in the machine's Chromium, light and
 * dark, and the demo's output as a drawing that plays. `npm run pictures` writes docs/pictures; with a folder, that one.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { chromium, type Page } from "playwright-core";
import { Client } from "../src/interfaces/client/client.ts";
import { findPaths } from "../src/base/config/paths.ts";
import { programPath } from "../test/support/skip.ts";
import { recordDemo } from "./recording.ts";

const root = join(import.meta.dirname, "..");
const folder = resolve(process.argv[2] ?? join(root, "docs", "pictures"));
const place = mkdtempSync(join(tmpdir(), "demo-"));
const project = join(place, "shop");
const config = join(place, "config.json");
const env = {
  ...process.env,
  PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
  VIV_HOME: join(place, "state"),
  VIV_CONFIG: config,
};
const LARGEST_BYTES = 150_000;
const CENTS = "return Math.round((Math.round(total(items) * 100) * (100 - percent)) / 100) / 100;";
const ATTEMPTS = {
  upgrade: "npm install --offline --no-audit --no-fund ./vendor/money-round-1.1.0.tgz",
  patch: `sed -i 's|return round(total.*|${CENTS}|' src/cart.js`,
  revert: "git -c user.name=me -c user.email=me@example.com revert --no-edit HEAD",
};
const client = new Client({ socket: findPaths(env).socket });

function viv(...args: string[]): string {
  return execFileSync(join(root, "bin/viv"), args, { cwd: project, env, encoding: "utf8" });
}

interface Made {
  readonly experiment: string;
  readonly winner: string;
  readonly question: string;
}

/** The demo's experiment, a change that is in reality, one that is still tried, and a question that waits. */
async function makeWork(): Promise<Made> {
  execFileSync("bash", [join(root, "examples/three-way-bug-fix/make.sh"), project], { env, stdio: "ignore" });
  const attempts = Object.entries(ATTEMPTS).flatMap(([name, command]) => ["--attempt", `${name}=${command}`]);
  viv("try", ...attempts, "--check", "npm test", "--setup", "npm ci --offline --no-audit --no-fund");
  const { experiments } = await client.call("listExperiments", {});
  const [experiment] = experiments;
  const winner = experiment?.attempts.find(({ index }) => index === experiment.winner);
  if (experiment === undefined || winner === undefined) throw new Error("the demo's experiment has no winner");
  await client.call("createSandbox", { project, name: "release", level: 2 });
  const asked = await client.call("decideAction", { sandbox: "release", action: { kind: "command", command: "git push origin main" } });
  return { experiment: experiment.id, winner: winner.sandbox ?? "", question: asked.approval?.id ?? "" };
}

async function open(page: Page, path: string): Promise<void> {
  const approver = readFileSync(join(env.VIV_HOME, "approver-token"), "utf8").trim();
  const { url } = await client.call("openDashboard", { page: path, approver });
  await page.goto(url);
  await page.locator('[data-live="live"]:visible').first().waitFor();
}

/** In light and in dark; the file's name says which. */
async function take(page: Page, name: string): Promise<void> {
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    // Colours of code are drawn once more for the other theme.
    await page.waitForTimeout(500);
    const picture = await page.screenshot({ path: join(folder, `${name}-${scheme}.png`) });
    if (picture.length > LARGEST_BYTES) throw new Error(`${name}-${scheme}.png has ${picture.length} bytes, of ${LARGEST_BYTES} at most`);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

async function takeAll(made: Made): Promise<void> {
  const browser = await chromium.launch({
    executablePath: programPath("chromium") ?? "chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1140, height: 980 }, reducedMotion: "reduce" });
    await open(page, `/experiment/${made.experiment}`);
    await page.getByRole("button", { name: "Promote patch" }).waitFor();
    await page.getByLabel("The other").selectOption("revert");
    await page.locator(".half diffs-container").nth(1).waitFor();
    await take(page, "experiment");
    viv("promote", made.experiment, "--message", "Round discounted prices in cents");
    await client.call("startExperiment", {
      project,
      attempts: [
        { name: "cache", command: "sleep 120" },
        { name: "index", command: "sleep 120" },
      ],
      checks: ["npm test"],
      env: { PATH: env.PATH },
    });
    await page.setViewportSize({ width: 1140, height: 460 });
    await page.goto(new URL("/", page.url()).href);
    await page.getByText("Round discounted prices in cents").first().waitFor();
    await page.getByText("git push origin main").first().waitFor();
    await take(page, "home");
    await page.setViewportSize({ width: 390, height: 620 });
    await page.goto(new URL(`/question/${made.question}`, page.url()).href);
    await page.getByText("git push origin main").first().waitFor();
    await take(page, "question");
  } finally {
    await browser.close();
  }
}

mkdirSync(folder, { recursive: true });
writeFileSync(config, "{}");
try {
  await takeAll(await makeWork());
  writeFileSync(join(folder, "demo.svg"), await recordDemo(root));
} finally {
  viv("prune", "--all");
  viv("down");
  rmSync(place, { recursive: true, force: true });
}
