/** Saves the text of the editor: validates it, asks for confirmation if needed, and opens the saved workflow. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { toast } from "../../app/toasts.ts";
import type { Finding } from "../queries.ts";
import { dropDraft } from "./drafts.ts";
import { latestVersion, saveDefinition, type Saved } from "./save.ts";
import { validate } from "./validation.ts";

/** A conflict that needs a confirmation: a newer version was saved, or the name belongs to another workflow. */
export interface SaveConflict {
  readonly name: string;
  readonly exists: number;
}

/** `onWrong` is called with the first error. */
export function useSaving(
  text: string,
  workflow: string | null,
  expected: number | null,
  unsaved: { current: boolean },
  onWrong: (finding: Finding) => void,
) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [conflict, setConflict] = useState<SaveConflict | null>(null);
  const mutation = useMutation({
    mutationFn: async (sure: boolean): Promise<Saved | null> => {
      const { name, errors } = await validate(text);
      const [wrong] = errors;
      if (wrong !== undefined) {
        // The errors are listed below the text; move to the first one.
        toast(
          "failed",
          `Not saved: the definition has ${errors.length === 1 ? "an error" : `${errors.length} errors`}.`,
        );
        onWrong(wrong);
        return null;
      }
      const found = sure || name === null ? null : await findConflict(name, workflow, expected);
      setConflict(found);
      return found === null ? saveDefinition(text) : null;
    },
    onSuccess: async (saved) => {
      if (saved === null) return;
      unsaved.current = false;
      dropDraft(workflow);
      await queries.invalidateQueries({ queryKey: ["workflows"] });
      const { name, version } = saved.workflow;
      toast("done", saved.created ? `Saved as version ${version} of ${name}.` : `No changes since version ${version}.`);
      await navigate({ to: "/workflows/$workflow", params: { workflow: name }, search: {} });
    },
  });
  return {
    save: () => mutation.mutate(false),
    saveAnyway: () => mutation.mutate(true),
    cancel: () => setConflict(null),
    busy: mutation.isPending,
    error: mutation.error,
    conflict,
  };
}

async function findConflict(
  name: string,
  workflow: string | null,
  expected: number | null,
): Promise<SaveConflict | null> {
  const exists = await latestVersion(name);
  return exists === null || (name === workflow && exists === expected) ? null : { name, exists };
}
