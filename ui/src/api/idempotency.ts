/** Keys that make two presses one run: the same wish is sent with the same key, another one with a new one. */

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
  // Not `randomUUID`: it is there only on https and on this machine's own address.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
