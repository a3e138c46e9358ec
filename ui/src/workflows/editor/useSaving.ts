/** Saving what has been written, and what comes before and after it. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { toast } from "../../app/toasts.ts";
import type { Finding } from "../queries.ts";
import { dropDraft } from "./drafts.ts";
import { latestVersion, saveDefinition, type Saved } from "./save.ts";
import { validate } from "./validation.ts";

/** What saving would come to that the writer may not mean: another version has come, or another workflow has the name. */
export interface Doubt {
  readonly name: string;
  readonly exists: number;
}

/** Saves, asks first where that would not do what the writer means, and leads to what was saved. */
export function useSaving(
  text: string,
  workflow: string | null,
  expected: number | null,
  unsaved: { current: boolean },
  onWrong: (finding: Finding) => void,
) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [doubt, setDoubt] = useState<Doubt | null>(null);
  const mutation = useMutation({
    mutationFn: async (sure: boolean): Promise<Saved | null> => {
      const { name, errors } = await validate(text);
      const [wrong] = errors;
      if (wrong !== undefined) {
        // They are listed below the text: one is led to the first.
        toast(
          "failed",
          `Not saved: ${errors.length === 1 ? "there is an error" : `there are ${errors.length} errors`} in the definition.`,
        );
        onWrong(wrong);
        return null;
      }
      const found = sure || name === null ? null : await doubtOf(name, workflow, expected);
      setDoubt(found);
      return found === null ? saveDefinition(text) : null;
    },
    onSuccess: async (saved) => {
      if (saved === null) return;
      unsaved.current = false;
      dropDraft(workflow);
      await queries.invalidateQueries({ queryKey: ["workflows"] });
      const { name, version } = saved.workflow;
      toast(
        "done",
        saved.created ? `Saved as version ${version} of ${name}.` : `Nothing has changed since version ${version}.`,
      );
      await navigate({ to: "/workflows/$workflow", params: { workflow: name }, search: {} });
    },
  });
  return {
    save: () => mutation.mutate(false),
    saveAnyway: () => mutation.mutate(true),
    cancel: () => setDoubt(null),
    busy: mutation.isPending,
    error: mutation.error,
    doubt,
  };
}

async function doubtOf(name: string, workflow: string | null, expected: number | null): Promise<Doubt | null> {
  const exists = await latestVersion(name);
  return exists === null || (name === workflow && exists === expected) ? null : { name, exists };
}
