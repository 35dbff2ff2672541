import { expect, test } from "vitest";
import type { ExecutionEvent } from "../../base/schema/notebook.ts";
import { RunningCode } from "./running-code.ts";

const print = (code: RunningCode, text: string): void => code.hear({ execution: code.id, output: { kind: "stdout", text } });

test("a listener that reads slowly hears what came meanwhile, also where the code ended before it had read the beginning", async () => {
  const code = new RunningCode("one", { sandbox: "box", context: "main" });
  print(code, "first\n");
  const heard: ExecutionEvent[] = [];
  for await (const event of code.listen(new AbortController().signal)) {
    heard.push(event);
    if (heard.length > 1) continue;
    print(code, "second\n");
    code.hear({ execution: code.id, reply: "ok", count: 1 });
    code.hear({ execution: code.id, isIdle: true });
  }
  expect(heard).toMatchObject([
    { type: "output", output: { text: "first\n" } },
    { type: "output", output: { text: "second\n" } },
    { type: "ended", execution: { state: "done" } },
  ]);
});
