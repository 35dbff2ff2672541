/** Before any test: the server as users get it, in a few files. It starts in half the time, and the tests start hundreds. */
import { dirname } from "node:path";
import { bundle } from "../../scripts/bundle.ts";
import { SERVER } from "./compiled.ts";

export async function setup(): Promise<void> {
  await bundle(dirname(SERVER));
}
