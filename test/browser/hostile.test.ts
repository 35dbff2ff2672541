/** Text that sandboxes make is text on every page: names and contents of files, commands, processes, questions. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BrowserLab, type Visitor } from "../support/browser-lab.ts";
import { needs } from "../support/skip.ts";

/** Runs, if any part of it is taken for more than text. */
const ATTACK = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
/** The same without a slash, as a file can be called. */
const NAME = `<img src=x onerror="document.title='owned'">.js`;

describe("hostile text in the dashboard (WEB-1)", needs("chromium", "root"), () => {
  let lab: BrowserLab;

  beforeAll(async () => {
    lab = await BrowserLab.start();
    await lab.server.create({ name: "hostile", level: 2 });
    const { project } = lab.server;
    const put = { sandbox: "hostile", command: ["tee", `${project}/${NAME}`], stdin: `// ${ATTACK}\n` };
    await lab.server.client.call("runCommand", put);
    await lab.server.client.call("runCommand", { sandbox: "hostile", command: ["mkdir", `${project}/${NAME}.d`] });
    const command = ["sh", "-c", "sleep 1000; echo", ATTACK];
    await lab.server.client.call("runCommand", { sandbox: "hostile", command, background: true });
  });

  afterAll(() => lab.close());

  /** Waits for the text, as it is; says what of it was run or made an element of, if anything. */
  async function faultsOf({ page, troubles }: Visitor, text: string): Promise<string[]> {
    await page.getByText(text).first().waitFor();
    const made = await page.locator('main img[src="x"], main script').count();
    return [...troubles, ...(made === 0 ? [] : ["an element was made"]), ...((await page.title()) === "owned" ? ["a script ran"] : [])];
  }

  test("the control: in a page without a policy, the same text does run", async () => {
    const { page } = await lab.visitor();
    await page.setContent(`<title>fine</title><main>${ATTACK}</main>`);
    await page.waitForFunction("document.title === 'owned'");
    await page.setContent(`<title>fine</title><main>${NAME}</main>`);
    await page.waitForFunction("document.title === 'owned'");
    expect(await page.locator('main img[src="x"]').count()).toBe(1);
  });

  test("a file's name and content are text in the review and its diff", async () => {
    const visitor = await lab.visit("/review/hostile");
    expect(await faultsOf(visitor, NAME)).toEqual([]);
    await visitor.page.locator("diffs-container").getByText("document.title='owned'").first().waitFor();
    expect(await visitor.page.locator("diffs-container img, diffs-container script[src]").count()).toBe(0);
    expect(await faultsOf(visitor, NAME)).toEqual([]);
    await lab.picture(visitor, "hostile-review");
  });

  test("a file's name and content are text among the files, and in the address of a folder", async () => {
    const visitor = await lab.visit("/sandbox/hostile?show=files");
    const { page } = visitor;
    await page.getByRole("button", { name: NAME }).filter({ hasNotText: ".js.d" }).click();
    await page.getByRole("button", { name: "Show" }).click();
    expect(await faultsOf(visitor, `// ${ATTACK}`)).toEqual([]);
    await page.getByRole("button", { name: `${NAME}.d` }).click();
    await page.getByText("The folder is empty.").waitFor();
    await page.reload();
    await page.getByText("The folder is empty.").waitFor();
    expect(await faultsOf(visitor, `${NAME}.d`)).toEqual([]);
  });

  test("commands, processes and the audit story are text", async () => {
    const visitor = await lab.visit("/sandbox/hostile?show=commands");
    expect(await faultsOf(visitor, ATTACK)).toEqual([]);
    await visitor.page.getByRole("region", { name: "Processes" }).getByText(ATTACK).waitFor();
    const audit = await lab.visit("/sandbox/hostile?show=audit");
    expect(await faultsOf(audit, "onerror=")).toEqual([]);
  });

  test("a question is text: its action, the rule that always would add, and its row", async () => {
    const command = `git push origin '${ATTACK}'`;
    const { approval } = await lab.server.client.call("decideAction", { sandbox: "hostile", action: { kind: "command", command } });
    const visitor = await lab.visit(`/question/${approval?.id ?? ""}`);
    expect(await faultsOf(visitor, command)).toEqual([]);
    const all = await lab.visit("/question");
    expect(await faultsOf(all, "git push origin")).toEqual([]);
    const home = await lab.visit("/");
    expect(await faultsOf(home, "git push origin")).toEqual([]);
  });
});
