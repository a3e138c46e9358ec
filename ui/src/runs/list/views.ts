/** The saved views of the run list, stored in this browser. */

import { useLocalStorage } from "@mantine/hooks";

import { type RunsSearch, runsSearch, written } from "./search.ts";

export interface View {
  readonly name: string;
  readonly search: RunsSearch;
}

export const MOST_NAME = 40;

export function useViews() {
  const [views, setViews] = useLocalStorage<readonly View[]>({
    key: "trunkline.runs.views",
    defaultValue: [],
    getInitialValueInEffect: false,
    deserialize: read,
  });
  return {
    views,
    /** Replaces a view with the same name. */
    save: (view: View) =>
      setViews((now) => {
        const at = now.findIndex((each) => each.name === view.name);
        return at < 0 ? [...now, view] : now.with(at, view);
      }),
    remove: (name: string) => setViews((now) => now.filter((each) => each.name !== name)),
  };
}

export function isSame(one: RunsSearch, other: RunsSearch): boolean {
  return written(one) === written(other);
}

/** The stored value may come from another version or be edited by hand. */
function read(text: string | undefined): readonly View[] {
  let kept: unknown;
  try {
    kept = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  if (!Array.isArray(kept)) return [];
  return kept.flatMap((each: unknown) => {
    const { name, search } = (each ?? {}) as { name?: unknown; search?: unknown };
    const isView = typeof name === "string" && typeof search === "object" && search !== null;
    return isView ? [{ name: name.slice(0, MOST_NAME), search: runsSearch(search as Record<string, unknown>) }] : [];
  });
}
