/** The document's title: by the address, unless a page knows better. */

import { useEffect, useLayoutEffect } from "react";

import { navigationItemOf } from "./navigationItems.ts";
import { escapeBidi } from "./bidi.ts";

const BRAND = "Trunkline";

export function titleOf(path: string): string {
  const place = navigationItemOf(path);
  if (place === undefined) return BRAND;
  if (path === place.makes) return `New · ${place.name} · ${BRAND}`;
  const rest = path
    .slice(place.to.length)
    .split("/")
    .filter((part) => part !== "")
    .map(decoded);
  return [...rest, place.name, BRAND].join(" · ");
}

let title = BRAND;
let count: string | null = null;

function show(): void {
  document.title = escapeBidi(count === null ? title : `(${count}) ${title}`);
}

/** For the shell: what the address says. Set before the effects of pages, so that theirs stay. */
export function useAddressTitle(path: string): void {
  useLayoutEffect(() => {
    title = titleOf(path);
    show();
  }, [path]);
}

/** For a page that can say more than its address: `Completed · review`. */
export function usePageTitle(said: string): void {
  useEffect(() => {
    title = `${said} · ${BRAND}`;
    show();
  }, [said]);
}

/** How many wait for a person, before the title of whatever page: `(2) Runs`. */
export function useTitleCount(waiting: string | null): void {
  useEffect(() => {
    count = waiting;
    show();
    return () => {
      count = null;
      show();
    };
  }, [waiting]);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
