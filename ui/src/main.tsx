import "@mantine/core/styles.css";
import "./app/app.css";

import { MantineProvider } from "@mantine/core";
import { MutationCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { NoResponseError, Problem } from "./api/problem.ts";
import { router } from "./app/router.tsx";
import { theme, variables } from "./app/theme.ts";

const queries = new QueryClient({
  mutationCache: new MutationCache({
    onError: (error) => {
      if (error instanceof NoResponseError) error.wasPressed = true;
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      // A rejected request would be rejected again; one without a response may succeed.
      retry: (count, error) => !(error instanceof Problem && error.status >= 400 && error.status < 500) && count < 3,
      refetchOnWindowFocus: true,
      refetchOnReconnect: "always",
    },
    // A mutation runs now or fails now; it is never repeated automatically after a reconnect.
    mutations: { networkMode: "always" },
  },
});

const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
// The scroll lock of dialogs reads the nonce here.
Object.assign(globalThis, { __webpack_nonce__: nonce });

// Render errors are shown on the page (`RouteProblem`), so they are not logged to the console.
createRoot(document.getElementById("root")!, { onCaughtError: () => {} }).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={variables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
