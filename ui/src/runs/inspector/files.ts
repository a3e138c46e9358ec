/**
 * Finds the files and texts in inputs and outputs of agents.
 *
 *     {"kind": "file", "file": {"name", "mimeType", "bytes" | "uri" | "blob"}}      A2A 0.x
 *     {"filename", "mediaType", "raw" | "url" | "blob"}                              A2A 1.0
 *
 * `blob` refers to content in the blob store. All of this is untrusted: names and types are displayed, but not relied on.
 */

export interface FoundFile {
  readonly name: string;
  readonly type: string;
  readonly where: string;
  readonly content:
    | { readonly of: "inline"; readonly base64: string }
    | { readonly of: "blob"; readonly run: string; readonly id: string; readonly bytes: number | null }
    | { readonly of: "link"; readonly url: string };
}

const MOST_FILES = 500;
const MOST_LOOKED_AT = 100_000;

export function filesIn(value: unknown): readonly FoundFile[] {
  const files: FoundFile[] = [];
  let left = MOST_LOOKED_AT;
  const look = (holder: unknown, where: string): void => {
    if (typeof holder !== "object" || holder === null || --left < 0 || files.length >= MOST_FILES) return;
    if (Array.isArray(holder)) {
      for (const item of holder) look(item, where);
      return;
    }
    const fields = holder as Readonly<Record<string, unknown>>;
    const file = fileOf(fields, where);
    if (file !== null) {
      files.push(file);
      return;
    }
    const inside = Array.isArray(fields["parts"]) && typeof fields["name"] === "string" ? fields["name"] : where;
    for (const item of Object.values(fields)) look(item, inside);
  };
  look(value, "");
  return files;
}

function fileOf(fields: Readonly<Record<string, unknown>>, where: string): FoundFile | null {
  const name = text(fields["filename"]) ?? text(fields["name"]);
  const type = text(fields["mediaType"]) ?? text(fields["mimeType"]);
  if (name === null && type === null) return null;
  const content = contentOf(fields);
  return content === null ? null : { name: name ?? "unnamed", type: type ?? "unknown type", where, content };
}

function contentOf(fields: Readonly<Record<string, unknown>>): FoundFile["content"] | null {
  const blob = fields["blob"];
  if (typeof blob === "object" && blob !== null) {
    const { run, id, bytes } = blob as { run?: unknown; id?: unknown; bytes?: unknown };
    if (typeof run === "string" && typeof id === "string") {
      return { of: "blob", run, id, bytes: typeof bytes === "number" ? bytes : null };
    }
  }
  const inline = text(fields["bytes"]) ?? text(fields["raw"]);
  if (inline !== null) return { of: "inline", base64: inline };
  const url = text(fields["uri"]) ?? text(fields["url"]);
  return url === null ? null : { of: "link", url };
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** Approximate: four characters encode three bytes. */
export function bytesOf(file: FoundFile): number | null {
  switch (file.content.of) {
    case "inline":
      return Math.floor((file.content.base64.replace(/=+$/, "").length * 3) / 4);
    case "blob":
      return file.content.bytes;
    case "link":
      return null;
  }
}

// Raster images only. SVG can contain scripts, so it is never shown.
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"]);

/** The image type for the browser, or null if the file is not shown as an image. */
export function pictureType(type: string): string | null {
  const plain = type.split(";")[0]!.trim().toLowerCase();
  return PICTURES.has(plain) ? plain : null;
}

/** A URL that is safe to link to, or null. */
export function safeLink(url: string): string | null {
  try {
    const parsed = new URL(url);
    return parsed.protocol === "http:" || parsed.protocol === "https:" ? parsed.href : null;
  } catch {
    return null;
  }
}

/** Null if the text is not base64. */
export function decoded(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    const letters = atob(base64.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  } catch {
    return null;
  }
}
