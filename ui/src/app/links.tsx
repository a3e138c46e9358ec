/** Mantine's links and buttons that lead to a page of ours: addresses are checked against the routes. */

import { Anchor, type AnchorProps, Button, type ButtonProps } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import { type AnchorHTMLAttributes, forwardRef } from "react";

type Plain<Props> = Props & Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof Props>;

export const AnchorLink = createLink(
  forwardRef<HTMLAnchorElement, Plain<AnchorProps>>(function AnchorLink(props, ref) {
    return <Anchor ref={ref} {...props} />;
  }),
);

export const ButtonLink = createLink(
  forwardRef<HTMLAnchorElement, Plain<ButtonProps>>(function ButtonLink(props, ref) {
    return <Button component="a" ref={ref} {...props} />;
  }),
);
