/** The login of this browser: a one-time link becomes a cookie, which scripts can't read, and a key, which only this origin has. */
import { LOGIN_PATH } from "../../../src/base/schema/routes.ts";
import type { LoginAnswer } from "../../../src/base/schema/dashboard.ts";

interface Kept {
  readonly key: string;
  readonly id: string;
  readonly mayAnswer: boolean;
}

const PLACE = "viv-session";

export function session(): Kept | undefined {
  try {
    const text = localStorage.getItem(PLACE);
    return text === null ? undefined : (JSON.parse(text) as Kept);
  } catch {
    // A browser that keeps nothing has no session either.
    return undefined;
  }
}

/** What the address carries behind `#login=`, which is taken out of it at once. */
function linkInAddress(): string | undefined {
  const link = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
  if (link !== undefined) history.replaceState(null, "", location.pathname + location.search);
  return link;
}

/** Uses up the link of the address, if there is one. Answers with what went wrong, in a sentence. */
export async function logIn(): Promise<string | undefined> {
  const link = linkInAddress();
  if (link === undefined) return undefined;
  try {
    const answer = await fetch(LOGIN_PATH, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ link }),
    });
    if (!answer.ok) {
      // A link that was used before does no harm to a browser that is logged in.
      if (session() !== undefined) return undefined;
      const { error } = (await answer.json()) as { error: { message: string } };
      return error.message;
    }
    const { key, session: opened } = (await answer.json()) as LoginAnswer;
    localStorage.setItem(PLACE, JSON.stringify({ key, id: opened.id, mayAnswer: opened.mayAnswer } satisfies Kept));
    return undefined;
  } catch (error) {
    return `The login did not reach the server: ${error instanceof Error ? error.message : String(error)}`;
  }
}
