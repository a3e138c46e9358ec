/** How well a text answers what somebody has typed: as the beginning of a word, within one, or letter by letter. */

// No sum of letters comes near the next better kind of answer.
export const BEGINS = 2_000;
const WITHIN = 1_000;
const MOST_LETTERS = 500;

/** Higher is better; null: not at all. */
export function match(typed: string, text: string): number | null {
  const wanted = typed.trim().toLowerCase();
  const found = text.toLowerCase();
  if (wanted === "") return 0;
  // Among equals the shorter and the earlier.
  const last = Math.min(found.length, MOST_LETTERS) / MOST_LETTERS;
  const begins = placeOf(wanted, found);
  if (begins !== null) return BEGINS - Math.min(begins, MOST_LETTERS) - last;
  const within = found.indexOf(wanted);
  if (within >= 0) return WITHIN - Math.min(within, MOST_LETTERS - 1) - last;
  return scattered(wanted, found, last);
}

/** Where a word begins with it. */
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
  // Letters scattered over a long text are no answer.
  return score >= wanted.length * 3 ? Math.min(score, MOST_LETTERS - 1) - last : null;
}

function beginsWord(text: string, place: number): boolean {
  return place === 0 || !/[\p{L}\p{N}]/u.test(text[place - 1]!);
}
