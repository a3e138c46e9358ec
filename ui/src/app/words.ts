/** What things are called on the page: for each value of a closed set, its words. */

export type Words<Value extends string, Word extends string> = Readonly<Record<Value, Readonly<Record<Word, string>>>>;
