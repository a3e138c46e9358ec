/** Scores how well a text matches a query: at the beginning of a word, inside a word, or letter by letter. */

// Larger than any score within a kind of match.
export const BEGINS = 2_000;
const WITHIN = 1_000;
const MOST_LETTERS = 500;

/** Higher is better; null means no match. */
export function match(typed: string, text: string): number | null {
  const wanted = typed.trim().toLowerCase();
  const found = text.toLowerCase();
  if (wanted === "") return 0;
  // Prefer shorter texts and earlier matches.
  const last = Math.min(found.length, MOST_LETTERS) / MOST_LETTERS;
  const begins = placeOf(wanted, found);
  if (begins !== null) return BEGINS - Math.min(begins, MOST_LETTERS) - last;
  const within = found.indexOf(wanted);
  if (within >= 0) return WITHIN - Math.min(within, MOST_LETTERS - 1) - last;
  return scattered(wanted, found, last);
}

/** The position of a word that begins with the query. */
function placeOf(wanted: string, text: string): number | null {
  for (let place = text.indexOf(wanted); place >= 0; place = text.indexOf(wanted, place + 1)) {
    if (beginsWord(text, place)) return place;
  }
  return null;
}

function scattered(wanted: string, text: string, last: number): number | null {
  let score = 0;
  let place = -1;
  for (const letter of wanted) {
    if (letter === " ") continue;
    const next = text.indexOf(letter, place + 1);
    if (next < 0) return null;
    score += beginsWord(text, next) ? 8 : next === place + 1 ? 5 : 1;
    place = next;
  }
  // Letters that are too far apart do not match.
  return score >= wanted.length * 3 ? Math.min(score, MOST_LETTERS - 1) - last : null;
}

function beginsWord(text: string, place: number): boolean {
  return place === 0 || !/[\p{L}\p{N}]/u.test(text[place - 1]!);
}
