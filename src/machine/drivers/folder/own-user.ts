import { userInfo } from "node:os";
import { VivError } from "../../../base/schema/errors.ts";

/** Without walls, everything runs as the server's own user. */
export function requireOwnUser(user: string): void {
  const own = userInfo();
  if (user === own.username || user === String(own.uid)) return;
  throw new VivError("unsupported", `An unwalled sandbox runs everything as ${own.username}; there is no user ${user} in it.`);
}
