/** Saves data as a file. The browser never opens it, whatever its type. */

// Characters with a meaning to file systems or shells.
const NOT_IN_A_NAME = /[\x00-\x1f\x7f\\/:*?"<>|\u202a-\u202e\u2066-\u2069]/g;
const LONGEST_NAME = 120;

export function safeName(name: string): string {
  const safe = name.replace(NOT_IN_A_NAME, "_").replace(/^\.+/, "").trim().slice(-LONGEST_NAME);
  return safe === "" ? "file" : safe;
}

export function download(content: BlobPart, name: string): void {
  const url = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = safeName(name);
  link.click();
  // The browser has started the download by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
