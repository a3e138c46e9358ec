/** The labels of a closed set of values. */

export type Labels<Value extends string, Word extends string> = Readonly<Record<Value, Readonly<Record<Word, string>>>>;
