import "@mantine/core/styles.css";
import "./app/app.css";

import { MantineProvider } from "@mantine/core";
import { MutationCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { NoAnswer, Problem } from "./api/problem.ts";
import { router } from "./app/router.tsx";
import { theme, variables } from "./app/theme.ts";

const queries = new QueryClient({
  mutationCache: new MutationCache({
    onError: (error) => {
      if (error instanceof NoAnswer) error.wasPressed = true;
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      // What the server has refused it refuses again; what did not answer may answer soon.
      retry: (count, error) => !(error instanceof Problem && error.status >= 400 && error.status < 500) && count < 3,
      refetchOnWindowFocus: true,
      refetchOnReconnect: "always",
    },
    // What somebody has asked for happens now or fails now; never by itself when Trunkline is back.
    mutations: { networkMode: "always" },
  },
});

const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
// Where what locks the page behind a dialog looks for it.
Object.assign(globalThis, { __webpack_nonce__: nonce });

// What a page fails with is shown in its place (`RouteProblem`): the console would only say it again.
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
