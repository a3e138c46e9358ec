/**
 * The steps whose inside is shown, in the address; one whose item is chosen is among them: closing it chooses the step
 * instead. Opening and closing are no steps of the way back.
 */

import { useCallback, useMemo, useState } from "react";

import { runRoute } from "../app/router.tsx";
import { ownerOf } from "./model.ts";

export interface ExpandedSteps {
  readonly open: ReadonlySet<string>;
  /** What was opened or closed last on this page; null: what is open was in the address. */
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
