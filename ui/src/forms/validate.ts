/**
 * Checks a form's value in the browser: what people get wrong most often. The server checks everything.
 *
 * Like `schema.ts` it leaves alone what it does not know.
 */

import { asNumber, isExact } from "../api/exactJson.ts";
import type { Finding } from "../api/problem.ts";
import { fieldOf, isSchema, pathText, resolved, type Json, type Path, type Schema } from "./schema.ts";

const DATE = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/i;
const EMAIL = /^[^@\s]+@[^@\s]+$/;

export function invalidValues(root: Schema, value: Json | undefined, name: string): readonly Finding[] {
  const found: Finding[] = [];
  visit(root, root, value, [name], found);
  return found;
}

function visit(given: Schema, root: Schema, value: Json | undefined, path: Path, found: Finding[]): void {
  if (value === undefined || value === null) return;
  const schema = resolved(given, root);
  const wrong = (message: string) => found.push({ path: pathText(path), message });
  const field = fieldOf(schema, path.length - 1);
  switch (field.kind) {
    case "text":
      checkText(schema, value, wrong);
      break;
    case "number":
      checkNumber(schema, value, field.whole, wrong);
      break;
    case "list":
      if (!Array.isArray(value)) break;
      checkCount(schema, value.length, wrong);
      (value as readonly Json[]).forEach((item, index) => visit(field.items, root, item, [...path, index], found));
      break;
    case "group":
      if (!isSchema(value)) break;
      for (const { name, schema: own } of field.properties) {
        visit(own, root, value[name], [...path, name], found);
      }
      break;
    case "boolean":
    case "choice":
    case "file":
    case "json":
      break;
  }
}

type Wrong = (message: string) => void;

function checkText(schema: Schema, value: Json, wrong: Wrong): void {
  if (typeof value !== "string") return;
  // JSON Schema counts code points, not UTF-16 units.
  const length = Array.from(value).length;
  const least = asNumber(schema["minLength"]);
  const most = asNumber(schema["maxLength"]);
  if (least !== null && length < least) wrong(`Enter at least ${least} characters.`);
  if (most !== null && length > most) wrong(`Enter at most ${most} characters. This text has ${length}.`);
  if (schema["format"] === "date" && !(DATE.test(value) && isDay(value))) wrong("Enter a date such as 2026-03-01.");
  if (schema["format"] === "date-time" && !(DATE_TIME.test(value) && !Number.isNaN(Date.parse(value)))) {
    wrong("Enter a time such as 2026-03-01T12:00:00Z.");
  }
  if (schema["format"] === "email" && !EMAIL.test(value)) wrong("Enter an email address.");
}

function isDay(value: string): boolean {
  const day = new Date(`${value}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(value);
}

function checkNumber(schema: Schema, value: Json, whole: boolean, wrong: Wrong): void {
  const number = isExact(value) ? Number(value) : value;
  if (typeof number !== "number") {
    wrong("Enter a number.");
    return;
  }
  if (whole && !Number.isInteger(number)) wrong("Enter a whole number.");
  const least = asNumber(schema["minimum"]);
  const most = asNumber(schema["maximum"]);
  if (least !== null && number < least) wrong(`Enter at least ${least}.`);
  if (most !== null && number > most) wrong(`Enter at most ${most}.`);
}

function checkCount(schema: Schema, count: number, wrong: Wrong): void {
  const least = asNumber(schema["minItems"]);
  const most = asNumber(schema["maxItems"]);
  if (least !== null && count < least) wrong(`Add at least ${least}.`);
  if (most !== null && count > most) wrong(`Remove some: ${most} are allowed.`);
}
