/** Errors of the API (problem+json), and the error of this page when the server does not respond. */

import type { components } from "./schema.d.ts";

type Body = components["schemas"]["Problem"];
export type Finding = NonNullable<Body["errors"]>[number];

export class Problem extends Error {
  readonly title: string;
  readonly status: number;
  readonly fix: string;
  readonly errors: readonly Finding[];
  readonly correlationId: string | null;

  constructor(shown: {
    title: string;
    status: number;
    detail: string;
    fix: string;
    errors?: readonly Finding[] | null | undefined;
    correlationId?: string | null | undefined;
  }) {
    super(shown.detail);
    this.name = "Problem";
    this.title = shown.title;
    this.status = shown.status;
    this.fix = shown.fix;
    this.errors = shown.errors ?? [];
    this.correlationId = shown.correlationId ?? null;
  }
}

export async function problemOf(response: Response): Promise<Problem> {
  const correlationId = response.headers.get("X-Correlation-ID");
  const text = await response.text();
  try {
    const body = JSON.parse(text) as Partial<Body>;
    return new Problem({
      title: body.title ?? `HTTP ${response.status}`,
      status: response.status,
      detail: body.detail ?? "The server returned an error without details.",
      fix: body.fix ?? "",
      errors: body.errors,
      correlationId: body.correlation_id ?? correlationId,
    });
  } catch {
    return new Problem({
      title: `HTTP ${response.status}`,
      status: response.status,
      detail: text.slice(0, 500) || "The response had no body.",
      fix: "The response may come from a proxy between this page and Trunkline. Check the proxy.",
      correlationId,
    });
  }
}

/** The kind of a request that got no response. A change may have been made even though its response was lost. */
export type Unanswered = "read" | "change" | "idempotent change";

export class NoResponseError extends Problem {
  readonly to: Unanswered;
  /** The user started the request: it is not repeated automatically. */
  wasPressed: boolean;

  constructor(to: Unanswered) {
    super({
      title: "Trunkline is not responding",
      status: 0,
      detail:
        to === "read"
          ? "No response was received."
          : "No response was received, so it is unknown whether the change was made.",
      fix: "",
    });
    this.to = to;
    this.wasPressed = to !== "read";
  }

  /** The advice while the server is unreachable, and after it is reachable again. */
  adviceWhen(answers: boolean): string {
    if (!this.wasPressed) return "Check that Trunkline is running. This page retries automatically.";
    const when = answers ? "Trunkline is reachable again:" : "When Trunkline is reachable again,";
    switch (this.to) {
      case "read":
        return `${when} try again.`;
      case "change":
        return `${when} check whether the change was made, and try again if it was not.`;
      case "idempotent change":
        return `${when} try again. The change is not made twice.`;
    }
  }
}
