/** What an agent has said, as text; addresses in it (http and https alone) can be followed, and are shown whole. */

import { Anchor } from "@mantine/core";

// Without the punctuation that ends a sentence.
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
