/**
 * Questions for the person. The client asks them and brings the answer back by the protocol's own way for that, which a model has no
 * part in: nothing in the arguments of a tool is ever an answer.
 */
import {
  createRequestStateCodec,
  inputRequired,
  inputResponse,
  type InputRequiredResult,
  type RequestStateCodec,
} from "@modelcontextprotocol/server";
import { VivError } from "../../base/schema/errors.ts";
import type { Question } from "../../base/schema/question.ts";
import type { Asked, Call } from "./call.ts";
import { clean } from "./results.ts";

const ANSWER = "answer";
/** People answer after lunch. */
const VALID_SECONDS = 4 * 3600;

export type PersonsAnswer = "yes" | "no" | "none";

/** Signs what goes through the client: for which tool of which connection it was made. */
export function askedCodec(key: Uint8Array): RequestStateCodec<Asked> {
  return createRequestStateCodec<Asked>({ key, ttlSeconds: VALID_SECONDS, bind: ({ mcpReq }) => mcpReq.method });
}

/** How a person answers who is not asked by the client. */
export function byHand(id: string): string {
  return `Tell the person: to allow this, type \`viv approve ${id}\` in a terminal; to refuse it, \`viv deny ${id}\`.`;
}

/** For a client that can't ask: what is asked, what the person types, and what to call after that. */
export function waitsFor(question: Question, afterwards: string): string {
  return clean(`It waits for a person: ${sentenceOf(question).replaceAll("\n", ". ")}. ${byHand(question.id)} Then call ${afterwards}.`);
}

export async function ask(call: Call, codec: RequestStateCodec<Asked>, message: string, asked: Asked): Promise<InputRequiredResult> {
  return inputRequired({
    inputRequests: {
      [ANSWER]: inputRequired.elicit({
        message: clean(message),
        requestedSchema: {
          type: "object",
          properties: { allow: { type: "boolean", title: "Allow this", description: "Yes allows exactly this, once." } },
          required: ["allow"],
        },
      }),
    },
    requestState: await codec.mint(asked, call.context),
  });
}

/** What the person said, where this call brings an answer back. */
export function answerOf(call: Call): { readonly asked: Asked; readonly answer: PersonsAnswer } | undefined {
  const asked = call.context.mcpReq.requestState<Asked>();
  if (asked === undefined) return undefined;
  const response = inputResponse(call.context.mcpReq.inputResponses, ANSWER);
  if (response.kind !== "elicit" || response.action === "cancel") return { asked, answer: "none" };
  return { asked, answer: response.action === "accept" && response.content?.["allow"] === true ? "yes" : "no" };
}

/** Whether this caller's person can be asked, and did not put this question away a moment ago. */
export function mayAsk(call: Call, { id }: Question): boolean {
  const back = answerOf(call);
  return call.approver !== undefined && !(back?.answer === "none" && back.asked.question === id);
}

/** Passes a person's answer on. A question that is another one by now, or was answered elsewhere, is left alone. */
export async function settle(call: Call, { question: id, hash }: Asked, answer: PersonsAnswer): Promise<Question> {
  const approver = call.approver;
  const question = await call.client.call("inspectApproval", { approval: id });
  if (answer === "none" || question.state !== "waiting") return question;
  if (question.hash !== hash)
    throw new VivError("illegal_transition", "What the person was asked about has changed since.", {
      remedy: "Call the same tool again: the person is asked anew.",
    });
  if (approver === undefined) throw new VivError("unauthorized", "This client may not answer for a person.", { remedy: byHand(id) });
  return call.client.call("answerApproval", {
    approval: id,
    answer: answer === "yes" ? "once" : "deny",
    approver,
    env: { ...call.parts.env },
  });
}

/** What a person is asked, in a few lines. */
export function sentenceOf({ kind, target, reason, sandboxName, project }: Question): string {
  const who = sandboxName === null ? "Something on this machine" : `The agent in sandbox ${sandboxName}`;
  const what = kind === "command" ? `run this command: ${target}` : kind === "host" ? `reach ${target}` : `do this (${kind}): ${target}`;
  return `${who} wants to ${what}\nWhy you are asked: ${reason}\nProject: ${project}`;
}
