/** An agent's text with clickable http and https URLs, which are shown in full. */

import { Anchor } from "@mantine/core";

// Without trailing punctuation.
const ADDRESS = /https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}]/g;

export function LinkedText({ text }: { text: string }) {
  const pieces: (string | { readonly address: string })[] = [];
  let end = 0;
  for (const found of text.matchAll(ADDRESS)) {
    pieces.push(text.slice(end, found.index), { address: found[0] });
    end = found.index + found[0].length;
  }
  pieces.push(text.slice(end));
  return pieces.map((piece, place) =>
    typeof piece === "string" ? (
      piece
    ) : (
      <Anchor key={place} href={piece.address} target="_blank" rel="noopener noreferrer" underline="always" inherit>
        {piece.address}
      </Anchor>
    ),
  );
}
