/** Names as they are written: what would turn the direction of a line, and show another name, is shown as its code. */

const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function plain(text: string): string {
  return text.replace(TURNING, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
