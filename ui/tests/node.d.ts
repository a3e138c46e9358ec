/** The one function of Node.js that the tests call; its types would also change those of the page. */
declare module "node:child_process" {
  export function execFileSync(
    file: string,
    args: readonly string[],
    options: { encoding: "utf8"; env: Readonly<Record<string, string>> },
  ): string;
}
