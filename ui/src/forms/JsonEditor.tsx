/** A JSON field. The editor is loaded on first use, and the text is checked while the user types. */

import { Input, Skeleton } from "@mantine/core";
import { lazy, Suspense, useId } from "react";

import { parseExact } from "../api/exactJson.ts";
import type { Json } from "./schema.ts";

const JsonCode = lazy(() => import("./JsonCode.tsx"));

export interface JsonEditorProps {
  readonly label: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly description?: string | undefined;
  readonly error?: string | null | undefined;
  readonly required?: boolean | undefined;
  readonly testId?: string | undefined;
}

export function JsonEditor({ label, text, onText, description, error, required, testId }: JsonEditorProps) {
  const id = useId();
  const broken = error ?? jsonProblem(text);
  return (
    <div data-testid={testId}>
      <Input.Wrapper
        label={label}
        labelElement="div"
        description={description}
        descriptionProps={{ id: `${id}-description` }}
        error={broken}
        errorProps={{ id: `${id}-error`, role: "status" }}
        withAsterisk={required ?? false}
      >
        <Suspense fallback={<Skeleton height={96} mt={4} />}>
          <JsonCode
            label={label}
            text={text}
            onText={onText}
            invalid={broken !== null}
            describedBy={`${id}-description ${id}-error`}
          />
        </Suspense>
      </Input.Wrapper>
    </div>
  );
}

/** The syntax error of the text, or null if it is valid JSON. */
export function jsonProblem(text: string): string | null {
  if (text.trim() === "") return null;
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `Invalid JSON: ${error instanceof Error ? error.message : String(error)}.`;
  }
}

export function parsed(text: string): Json | undefined {
  return text.trim() === "" ? undefined : (parseExact(text) as Json);
}

export function written(value: Json | undefined): string {
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}
