/** The differing part of two short texts, without their common prefix and suffix. */

export interface TextDifference {
  readonly before: string;
  readonly old: string;
  readonly new: string;
  readonly after: string;
}

export function textDifference(old: string, fresh: string): TextDifference {
  const left = words(old);
  const right = words(fresh);
  const most = Math.min(left.length, right.length);
  let start = 0;
  while (start < most && left[start] === right[start]) start++;
  let end = 0;
  while (end < most - start && left[left.length - 1 - end] === right[right.length - 1 - end]) end++;
  return {
    before: left.slice(0, start).join(""),
    old: left.slice(start, left.length - end).join(""),
    new: right.slice(start, right.length - end).join(""),
    after: left.slice(left.length - end).join(""),
  };
}

function words(text: string): string[] {
  return text.match(/[\p{L}\p{N}]+|[^\p{L}\p{N}]/gu) ?? [];
}
