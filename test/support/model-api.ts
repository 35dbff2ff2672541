/** Model APIs that misbehave, for tests of the gateway: by the name of the model that is asked for. */
import { ScriptedModel, type ModelRequest, type Step } from "./scripted-model.ts";

/** Repeats the key, as an API should not. */
function echo({ headers }: ModelRequest): Step {
  const key = String(headers["x-api-key"] ?? headers["x-goog-api-key"] ?? headers.authorization ?? "");
  const message = `bad key ${JSON.stringify(headers)}`;
  return { failures: [{ status: 422, message, headers: { "request-id": key, "set-cookie": "a=b" } }] };
}

/** Refuses a login, and repeats it. */
function expired({ headers }: ModelRequest): Step {
  const message = `expired ${headers.authorization}`;
  return { failures: [{ status: 401, message, headers: { "request-id": String(headers.authorization) } }] };
}

/** Sends the caller to another address. */
function elsewhere(): Step {
  return { failures: [{ status: 307, headers: { location: "http://127.0.0.1:1/" } }] };
}

export async function openModelApi(): Promise<ScriptedModel> {
  return ScriptedModel.open({ echo, expired, elsewhere });
}
