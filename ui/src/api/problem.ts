/** What went wrong, as the API says it (problem+json), and as this page says it when nobody answers. */

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
      detail: body.detail ?? "The server gave no reason.",
      fix: body.fix ?? "",
      errors: body.errors,
      correlationId: body.correlation_id ?? correlationId,
    });
  } catch {
    return new Problem({
      title: `HTTP ${response.status}`,
      status: response.status,
      detail: text.slice(0, 500) || "The answer had no body.",
      fix: "Something between this page and Trunkline may have answered: look at the proxy.",
      correlationId,
    });
  }
}

/** What was asked for without an answer. A change may have been made all the same, and only its answer be lost. */
export type Unanswered = "read" | "change" | "change that is made once";

export class NoAnswer extends Problem {
  readonly to: Unanswered;
  /** Somebody has pressed for it: it is not asked for again by itself. */
  wasPressed: boolean;

  constructor(to: Unanswered) {
    super({
      title: "Trunkline does not answer",
      status: 0,
      detail: to === "read" ? "No answer came." : "It is not known whether this was done: no answer came.",
      fix: "",
    });
    this.to = to;
    this.wasPressed = to !== "read";
  }

  /** What to do, while nobody answers and when somebody does again. */
  adviceWhen(answers: boolean): string {
    if (!this.wasPressed) return "Is it running? This page tries again by itself.";
    const when = answers ? "It answers now:" : "Once it answers,";
    switch (this.to) {
      case "read":
        return `${when} press again.`;
      case "change":
        return `${when} look whether it was done, and press again if it was not.`;
      case "change that is made once":
        return `${when} press again. It is not done twice.`;
    }
  }
}
