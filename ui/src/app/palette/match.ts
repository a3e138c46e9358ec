/** How well a text answers what somebody has typed: all its letters, in order, best at the beginnings of words. */

/** Higher is better; null: not at all. */
export function match(typed: string, text: string): number | null {
  const wanted = typed.trim().toLowerCase();
  const found = text.toLowerCase();
  if (wanted === "") return 0;
  const whole = found.indexOf(wanted);
  if (whole >= 0) return 1_000 - whole - (beginsWord(found, whole) ? 0 : 200) - found.length / 100;
  let score = 0;
  let place = -1;
  for (const letter of wanted) {
    if (letter === " ") continue;
    const next = found.indexOf(letter, place + 1);
    if (next < 0) return null;
    score += beginsWord(found, next) ? 8 : next === place + 1 ? 5 : 1;
    place = next;
  }
  // Letters scattered over a long text are no answer.
  return score >= wanted.length * 3 ? score - found.length / 100 : null;
}

function beginsWord(text: string, place: number): boolean {
  return place === 0 || !/[\p{L}\p{N}]/u.test(text[place - 1]!);
}
