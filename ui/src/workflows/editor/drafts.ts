/**
 * Unsaved text, kept in the session storage of this tab: it survives a reload and leaving the page.
 *
 * If the storage is full or disabled, editing still works, and the user is warned before leaving.
 */

export interface Draft {
  readonly text: string;
  /** The latest version when editing started; null if there was none. */
  readonly latest: number | null;
}

const PREFIX = "trunkline.draft.";

/** `workflow` is null for a new workflow. */
function placeOf(workflow: string | null): string {
  return workflow === null ? `${PREFIX}new` : `${PREFIX}of.${workflow}`;
}

export function readDraft(workflow: string | null): Draft | null {
  try {
    const kept = sessionStorage.getItem(placeOf(workflow));
    if (kept === null) return null;
    const draft = JSON.parse(kept) as Partial<Draft>;
    return typeof draft.text === "string" ? { text: draft.text, latest: draft.latest ?? null } : null;
  } catch {
    return null;
  }
}

/** Returns whether the draft was stored. */
export function keepDraft(workflow: string | null, draft: Draft): boolean {
  try {
    sessionStorage.setItem(placeOf(workflow), JSON.stringify(draft));
    return true;
  } catch {
    return false;
  }
}

export function dropDraft(workflow: string | null): void {
  try {
    sessionStorage.removeItem(placeOf(workflow));
  } catch {
    return;
  }
}
