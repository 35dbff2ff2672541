/** Whether there is a server to speak with. */
import { connect } from "node:net";
import { VivError } from "../../base/schema/errors.ts";

/** Whether a server answers at the socket. */
export async function isListening(socket: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const attempt = connect(socket);
    attempt.once("connect", () => {
      attempt.destroy();
      resolve(true);
    });
    attempt.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EACCES" || error.code === "EPERM") reject(notOurs(socket, error));
      else resolve(false);
    });
  });
}

function notOurs(socket: string, cause: Error): VivError {
  return new VivError("denied", `The server at ${socket} belongs to another user.`, {
    cause,
    remedy: "Use it as that user, or choose a state folder of your own with VIV_HOME.",
  });
}
