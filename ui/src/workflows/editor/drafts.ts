/**
 * What has been written and not saved, kept for this tab: a reload, or a page that was left by mistake, loses nothing.
 *
 * Where the browser keeps nothing (its room is full, or it is forbidden) writing goes on all the same; the warning on
 * leaving is what remains.
 */

export interface Draft {
  readonly text: string;
  /** The latest version when the writing began; null: there was none. */
  readonly latest: number | null;
}

const PREFIX = "trunkline.draft.";

/** `workflow` null: the one that has no name yet. */
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

/** Whether it was kept. */
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
