/**
 * The expanded steps, which are kept in the URL. The step of a selected item is always expanded; collapsing it selects
 * the step. Expanding and collapsing add no history entries.
 */

import { useCallback, useMemo, useState } from "react";

import { runRoute } from "../app/router.tsx";
import { ownerOf } from "./model.ts";

export interface ExpandedSteps {
  readonly open: ReadonlySet<string>;
  /** The step that was expanded or collapsed last on this page; null at first. */
  readonly opened: string | null;
  readonly toggle: (step: string) => void;
}

export function useExpandedSteps(selected: string | null): ExpandedSteps {
  const { open: written = "" } = runRoute.useSearch();
  const navigate = runRoute.useNavigate();
  const [opened, setOpened] = useState<string | null>(null);
  const owner = selected !== null && ownerOf(selected) !== selected ? ownerOf(selected) : null;
  const open = useMemo(() => new Set([...namesIn(written), ...(owner === null ? [] : [owner])]), [written, owner]);
  const toggle = useCallback(
    (step: string) => {
      setOpened(step);
      void navigate({
        search: ({ open: before = "", ...now }) => {
          const names = namesIn(before);
          const isOpen = names.includes(step) || step === owner;
          const after = isOpen ? names.filter((name) => name !== step) : [...names, step];
          const chosen = step === owner ? { ...(now.tab === undefined ? {} : { tab: now.tab }), step } : now;
          return { ...chosen, ...(after.length === 0 ? {} : { open: after.join(",") }) };
        },
        replace: step !== owner,
        resetScroll: false,
      });
    },
    [navigate, owner],
  );
  return { open, opened, toggle };
}

function namesIn(written: string): readonly string[] {
  return written === "" ? [] : written.split(",");
}
