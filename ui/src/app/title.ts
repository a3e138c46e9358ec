/** The document title: derived from the URL, unless the page sets a better one. */

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

/** Sets the title from the URL; used by the shell. It runs before the effects of pages, so that theirs win. */
export function useAddressTitle(path: string): void {
  useLayoutEffect(() => {
    title = titleOf(path);
    show();
  }, [path]);
}

/** Sets a title with more detail than the URL: `Completed · review`. */
export function usePageTitle(said: string): void {
  useEffect(() => {
    title = `${said} · ${BRAND}`;
    show();
  }, [said]);
}

/** Prefixes the title with the number of inbox items: `(2) Runs`. */
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
