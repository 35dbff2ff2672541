// Stands for the model API, so that the example costs nothing and always ends the same: it speaks like Anthropic's, and says what
// stands in its two scripts. With a real key none of this is needed.
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";

const bash = (command) => ({ type: "tool_use", name: "Bash", input: { command, description: "example" } });
const say = (text) => ({ type: "text", text });

/** What the model says to the agent that works on the task, one answer after the other. */
const WORKER = [
  [say("I look at the tests first."), bash("npm test 2>&1 | tail -n 20; cat src/discount.js")],
  [
    say("The percentage is taken off as if it were cents."),
    bash("sed -i 's|return .*|return Math.round((cents * (100 - percent)) / 100);|' src/discount.js"),
  ],
  [bash("npm test")],
  [
    say("The tests pass. I ask the reviewer."),
    {
      type: "tool_use",
      name: "mcp__vivarium__coordinate_sibling",
      input: { targetSandboxId: "reviewer", action: "Is this fix of src/discount.js right?", context: "npm test passes." },
    },
  ],
  [
    {
      type: "tool_use",
      name: "mcp__vivarium__create_task",
      input: { title: "Refuse discounts above 100 percent", description: "discounted() gives a negative price for them." },
    },
  ],
  [say("The discount is a share of the price now. All tests pass, and the reviewer agrees.")],
];

/** What it says to the agent that reviews. */
const REVIEWER = [
  [{ type: "tool_use", name: "Grep", input: { pattern: "discounted", path: ".", output_mode: "content" } }],
  [say("APPROVED: src/discount.js:3 takes the percentage of the price and rounds to whole cents. No other file calls it.")],
];

/** As many answers were given as the conversation holds already. */
function answerTo({ messages, tools = [] }) {
  if (tools.length === 0) return [say("ok")];
  const script = JSON.stringify(messages[0]).includes("Review the change that another agent made") ? REVIEWER : WORKER;
  return script[messages.filter(({ role }) => role === "assistant").length] ?? [say("Done.")];
}

let count = 0;
function events({ model }, blocks) {
  const id = `msg_${(count += 1)}`;
  const usage = { input_tokens: 1200, output_tokens: 300 };
  const reason = blocks.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn";
  return [
    { type: "message_start", message: { id, type: "message", role: "assistant", model, content: [], stop_reason: null, usage } },
    ...blocks.flatMap((block, index) => [
      {
        type: "content_block_start",
        index,
        content_block: block.type === "text" ? { type: "text", text: "" } : { ...block, id: `call_${count}_${index}`, input: {} },
      },
      {
        type: "content_block_delta",
        index,
        delta:
          block.type === "text"
            ? { type: "text_delta", text: block.text }
            : { type: "input_json_delta", partial_json: JSON.stringify(block.input) },
      },
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 300 } },
    { type: "message_stop" },
  ];
}

const server = createServer(async (request, response) => {
  let text = "";
  for await (const part of request) text += part;
  const asked = text === "" ? {} : JSON.parse(text);
  if (!request.url.startsWith("/v1/messages") || request.url.includes("count_tokens")) {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ input_tokens: 1 }));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events(asked, answerTo(asked))) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}).listen(0, "127.0.0.1", () => writeFileSync(process.argv[2], String(server.address().port)));
