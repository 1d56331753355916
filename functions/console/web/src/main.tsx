import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client";
import { router } from "./router";
import "./styles.css";

// Rights may be taken while a page is open. After a refusal they are asked for again, so that buttons go.
const cache = new QueryCache({
  onError: (error, query) => {
    if (error instanceof ApiError && error.status === 403 && query.queryKey[0] !== "rights") {
      void queries.invalidateQueries({ queryKey: ["rights"] });
    }
  },
});

const queries: QueryClient = new QueryClient({
  queryCache: cache,
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      // A refusal stays one; only a server that is away may come back.
      retry: (tries, error) => tries < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500),
    },
  },
});

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
