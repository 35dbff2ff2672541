/** Pictures of the dashboard's icon for home screens and notifications, from web/public/icon.svg, by the machine's Chromium. `node scripts/icons.ts` writes them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Page } from "playwright-core";

const folder = join(import.meta.dirname, "..", "web", "public");
const drawing = readFileSync(join(folder, "icon.svg"), "utf8");
const COLOUR = "#0f766e";
/** What Android cuts an icon to may take a tenth of each side. */
const maskable = drawing.replace(/<rect[^>]*>/, "").replace('viewBox="0 0 32 32"', 'viewBox="1 1.75 30 30"');
/** A badge is a shape in one colour on nothing: the system gives it its own. */
const badge = drawing
  .replace(/<rect[^>]*>/, "")
  .replaceAll(/stroke="#[\da-f]+"/g, 'stroke="#fff"')
  .replace('viewBox="0 0 32 32"', 'viewBox="6 6.75 20 20"');

const PICTURES = [
  { name: "icon-192.png", size: 192, svg: drawing, background: "transparent" },
  { name: "icon-512.png", size: 512, svg: drawing, background: "transparent" },
  // The system rounds the corners itself, and shows black where nothing is.
  { name: "icon-180.png", size: 180, svg: maskable, background: COLOUR },
  { name: "icon-maskable-512.png", size: 512, svg: maskable, background: COLOUR },
  { name: "badge-96.png", size: 96, svg: badge, background: "transparent" },
] as const;

async function draw(page: Page, { name, size, svg, background }: (typeof PICTURES)[number]): Promise<void> {
  await page.setViewportSize({ width: size, height: size });
  await page.setContent(
    `<style>html,body{margin:0;background:${background}}svg{display:block;width:${size}px;height:${size}px}</style>${svg}`,
  );
  await page.screenshot({ path: join(folder, name), omitBackground: background === "transparent" });
}

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage();
for (const picture of PICTURES) await draw(page, picture);
await browser.close();
