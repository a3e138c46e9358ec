/** Mantine's links and buttons with type-checked routes. */

import { Anchor, type AnchorProps, Button, type ButtonProps } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import { type AnchorHTMLAttributes, forwardRef } from "react";

import { escapeBidi } from "./bidi.ts";

type Plain<Props> = Props & Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof Props>;

export const AnchorLink = createLink(
  forwardRef<HTMLAnchorElement, Plain<AnchorProps>>(function AnchorLink({ children, ...props }, ref) {
    return (
      <Anchor ref={ref} {...props}>
        {typeof children === "string" ? escapeBidi(children) : children}
      </Anchor>
    );
  }),
);

export const ButtonLink = createLink(
  forwardRef<HTMLAnchorElement, Plain<ButtonProps>>(function ButtonLink(props, ref) {
    return <Button component="a" ref={ref} {...props} />;
  }),
);
