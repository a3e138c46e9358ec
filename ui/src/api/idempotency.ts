/** Idempotency keys: a repeated request with the same content gets the same key, so a double click starts one run. */

export class StartKey {
  #text: string | null = null;
  #key = "";

  of(text: string): string {
    if (text !== this.#text) {
      this.#text = text;
      this.#key = drawnKey();
    }
    return this.#key;
  }
}

export function drawnKey(): string {
  // Not `randomUUID`: browsers provide it only on https and on localhost.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
