import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Shell } from "./app/shell.tsx";
import { applyTheme } from "./app/theme.tsx";
import { queries, startListening } from "./server/queries.ts";
import { logIn, session } from "./server/session.ts";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";

applyTheme();
const trouble = await logIn();
startListening();
// Not before the page is there: it only matters for when it is gone again.
if ("Notification" in window && Notification.permission === "granted" && session() !== undefined)
  window.setTimeout(() => void import("./push/subscription.ts").then(({ keep }) => keep()).catch(() => undefined), 3_000);
const place = document.getElementById("root");
if (place !== null)
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <Shell trouble={trouble} />
      </QueryClientProvider>
    </StrictMode>,
  );
