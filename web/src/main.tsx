import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Shell } from "./app/shell.tsx";
import { applyTheme } from "./app/theme.tsx";
import { queries, startListening } from "./server/queries.ts";
import { logIn } from "./server/session.ts";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";

applyTheme();
const trouble = await logIn();
startListening();
const place = document.getElementById("root");
if (place !== null)
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <Shell trouble={trouble} />
      </QueryClientProvider>
    </StrictMode>,
  );
