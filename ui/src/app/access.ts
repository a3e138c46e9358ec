/** What the key of this page may do. */

export type Role = "viewer" | "operator" | "admin";

export type May = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

export function useMay(_role: Role): May {
  return { allowed: true };
}
