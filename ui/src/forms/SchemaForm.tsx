/** A form generated from a JSON Schema. Its value is always JSON, without the empty fields. */

import {
  ActionIcon,
  Button,
  Checkbox,
  Fieldset,
  FileInput,
  Group,
  NumberInput,
  PasswordInput,
  Select,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { Plus, Trash2 } from "lucide-react";
import { createContext, useContext, useEffect, useRef, useState, type ReactNode } from "react";

import { asNumber, isExact, KEEPS_ALL_DIGITS, parseExact } from "../api/exactJson.ts";
import classes from "./SchemaForm.module.css";
import { JsonEditor, jsonProblem, parsed, written } from "./JsonEditor.tsx";
import {
  beginning,
  blank,
  fieldOf,
  pathText,
  resolved,
  type Choice,
  type Json,
  type Path,
  type Property,
  type Schema,
} from "./schema.ts";

interface Form {
  readonly root: Schema;
  /** Messages by the path of the field. */
  readonly messages: ReadonlyMap<string, readonly string[]>;
  /** Called when a field contains invalid JSON, because it has no value to send. */
  readonly onBroken: (place: string, broken: boolean) => void;
  /** Stores a file; null: the form has no place for files. */
  readonly upload: Upload | null;
  /** A message applies to the value the field had when it was checked. */
  readonly onTouched: (place: string) => void;
}

/** What the value has in place of a file. */
export type Upload = (file: File) => Promise<Json>;

const FormContext = createContext<Form | null>(null);

export interface SchemaFormProps {
  readonly schema: Schema;
  readonly name: string;
  readonly value: Json | undefined;
  readonly onChange: (value: Json | undefined) => void;
  readonly messages: ReadonlyMap<string, readonly string[]>;
  readonly onBroken: (place: string, broken: boolean) => void;
  readonly upload?: Upload;
}

export function SchemaForm({ schema, name, value, onChange, messages, onBroken, upload }: SchemaFormProps) {
  const [left, setLeft] = useState({ all: messages, messages });
  if (left.all !== messages) setLeft({ all: messages, messages });
  const onTouched = (place: string) =>
    setLeft((before) => ({
      ...before,
      messages: new Map([...before.messages].filter(([where]) => where !== place)),
    }));
  return (
    <FormContext value={{ root: schema, messages: left.messages, onBroken, upload: upload ?? null, onTouched }}>
      <Control schema={schema} path={[name]} label={name} required value={value} onChange={onChange} />
    </FormContext>
  );
}

interface ControlProps {
  readonly schema: Schema;
  readonly path: Path;
  readonly label: string;
  readonly required: boolean;
  readonly value: Json | undefined;
  readonly onChange: (value: Json | undefined) => void;
}

function useForm(): Form {
  return useContext(FormContext)!;
}

function Control(props: ControlProps) {
  const { root, messages, onTouched } = useForm();
  const schema = resolved(props.schema, root);
  const place = pathText(props.path);
  const onChange = (value: Json | undefined) => {
    if (messages.has(place)) onTouched(place);
    props.onChange(value);
  };
  const known = { ...props, schema, onChange };
  const field = fieldOf(schema, props.path.length - 1);
  switch (field.kind) {
    case "text":
      return <TextField {...known} format={field.format} />;
    case "number":
      return <NumberField {...known} whole={field.whole} />;
    case "boolean":
      return <BooleanField {...known} />;
    case "choice":
      return <ChoiceField {...known} options={field.options} />;
    case "file":
      return <FileField {...known} />;
    case "list":
      return <ListField {...known} items={field.items} />;
    case "group":
      return <GroupField {...known} properties={field.properties} />;
    case "json":
      return <JsonField {...known} />;
  }
}

/** The properties that all fields share. */
function useLook({ schema, path, label, required }: ControlProps) {
  const { messages } = useForm();
  const place = pathText(path);
  const said = messages.get(place) ?? [];
  return {
    label: typeof schema["title"] === "string" ? schema["title"] : label,
    description: typeof schema["description"] === "string" ? schema["description"] : undefined,
    error: said.length > 0 ? said.join(" ") : undefined,
    // Not `required`: the browser would show its own message instead of the server's.
    withAsterisk: required,
    "data-testid": `field-${place}`,
  };
}

const EXAMPLES: Readonly<Record<string, string>> = {
  "date-time": "2026-03-01T12:00:00Z",
  time: "12:00:00Z",
  duration: "PT5M",
  uri: "https://example.com/path",
  uuid: "018f2c5e-0000-7000-8000-000000000000",
};

function TextField(props: ControlProps & { readonly format: string | null }) {
  const { format, value, onChange } = props;
  const look = useLook(props);
  const shared = {
    ...look,
    value: typeof value === "string" ? value : "",
    onChange: (event: { currentTarget: { value: string } }) => {
      const text = event.currentTarget.value;
      // A list entry cannot be left out.
      onChange(text === "" && typeof props.path.at(-1) !== "number" ? undefined : text);
    },
  };
  if (format === "password") return <PasswordInput {...shared} autoComplete="off" />;
  if (format === "date") return <TextInput {...shared} type="date" />;
  if (format === "email") return <TextInput {...shared} type="email" autoComplete="off" />;
  if (format !== null && format in EXAMPLES) return <TextInput {...shared} placeholder={EXAMPLES[format]} />;
  return <Textarea {...shared} autosize minRows={1} maxRows={12} />;
}

function NumberField(props: ControlProps & { readonly whole: boolean }) {
  const { schema, value, onChange, whole } = props;
  const look = useLook(props);
  // The text as typed, which can differ from the value: `1.`
  const [typed, setTyped] = useState<number | string>("");
  const isLong = isExact(value) && value.isLong;
  return (
    <NumberInput
      {...look}
      value={written(numberOf(typed)) === written(value) ? typed : shownNumber(value)}
      onChange={(given) => {
        setTyped(given);
        onChange(numberOf(given));
      }}
      // Prevents rounding by the step buttons and on blur.
      hideControls={isLong}
      withKeyboardEvents={!isLong}
      trimLeadingZeroesOnBlur={!KEEPS_ALL_DIGITS}
      allowDecimal={!whole}
      step={asNumber(schema["multipleOf"]) ?? 1}
      startValue={asNumber(schema["minimum"]) ?? 0}
      clampBehavior="none"
      maw={240}
    />
  );
}

const NUMBER = /^(-?)0*(\d*)(?:\.(\d*))?$/;

/** The number with all its digits. A text that is not a number, such as `-`, is sent for the server to reject. */
function numberOf(given: number | string): Json | undefined {
  if (given === "") return undefined;
  const found = typeof given === "string" && /\d/.test(given) ? NUMBER.exec(given) : null;
  if (found === null) return given;
  const [, sign, whole, part] = found;
  return parseExact(`${sign}${whole || "0"}${part ? `.${part}` : ""}`) as Json;
}

/** The field accepts only digits, so a number with an exponent is shown as the nearest plain number. */
function shownNumber(value: Json | undefined): number | string {
  if (isExact(value)) return /e/i.test(String(value)) ? Number(value) : String(value);
  return typeof value === "number" || typeof value === "string" ? value : "";
}

function BooleanField(props: ControlProps) {
  const { label, description, error, "data-testid": testId } = useLook(props);
  return (
    <Checkbox
      data-testid={testId}
      label={label}
      description={description}
      error={error}
      checked={props.value === true}
      onChange={(event) => props.onChange(event.currentTarget.checked)}
    />
  );
}

function ChoiceField(props: ControlProps & { readonly options: readonly Choice[] }) {
  const { options, value, onChange, required } = props;
  const look = useLook(props);
  return (
    <Select
      {...look}
      data={options.map((option) => ({ value: JSON.stringify(option.value), label: option.title }))}
      value={value === undefined ? null : JSON.stringify(value)}
      onChange={(chosen) => onChange(chosen === null ? undefined : (parseExact(chosen) as Json))}
      placeholder="Select…"
      clearable={!required}
      maw={360}
    />
  );
}

/** A file is uploaded when it is chosen; the value refers to it. */
function FileField(props: ControlProps) {
  const { path, value, onChange, required } = props;
  const { upload, onBroken } = useForm();
  const look = useLook(props);
  const [state, setState] = useState<{ readonly busy: boolean; readonly problem: string | null }>({
    busy: false,
    problem: null,
  });
  if (upload === null) return <JsonField {...props} />;
  const place = pathText(path);
  const choose = (file: File | null) => {
    setState({ busy: file !== null, problem: null });
    onBroken(place, file !== null);
    onChange(undefined);
    if (file === null) return;
    upload(file)
      .then((uploaded) => {
        setState({ busy: false, problem: null });
        onChange(uploaded);
      })
      .catch((error: unknown) =>
        setState({ busy: false, problem: error instanceof Error ? error.message : String(error) }),
      )
      .finally(() => onBroken(place, false));
  };
  return (
    <FileInput
      {...look}
      error={state.problem ?? look.error}
      placeholder={nameOf(value) ?? (state.busy ? "Uploading…" : "Choose a file")}
      clearable={!required || value !== undefined}
      disabled={state.busy}
      onChange={choose}
      maw={360}
    />
  );
}

function nameOf(value: Json | undefined): string | null {
  return isObject(value) && typeof value["name"] === "string" ? value["name"] : null;
}

function ListField(props: ControlProps & { readonly items: Schema }) {
  const { items, path, value, onChange, required } = props;
  const { root } = useForm();
  const look = useLook(props);
  const entries = Array.isArray(value) ? (value as readonly Json[]) : [];
  const buttonPlace = buttonPlaceOf(resolved(items, root), path.length);
  const newest = useRef<HTMLDivElement>(null);
  const hasAdded = useRef(false);
  useEffect(() => {
    if (!hasAdded.current) return;
    hasAdded.current = false;
    newest.current?.querySelector<HTMLElement>("input, textarea, button, [contenteditable=true]")?.focus();
  }, [entries.length]);
  const change = (next: readonly Json[]) => onChange(next.length === 0 && !required ? undefined : next);
  return (
    <Section {...look}>
      {entries.map((entry, index) => (
        <div key={index} className={classes["entry"]} data-button-place={buttonPlace}>
          <div className={classes["control"]} ref={index === entries.length - 1 ? newest : null}>
            <Control
              schema={items}
              path={[...path, index]}
              label={`${look.label} ${index + 1}`}
              required={false}
              value={entry}
              onChange={(next) => change(entries.map((other, place) => (place === index ? (next ?? null) : other)))}
            />
          </div>
          <ActionIcon
            variant="default"
            size={36}
            aria-label={`Remove ${look.label} ${index + 1}`}
            onClick={() => change(entries.filter((_, place) => place !== index))}
          >
            <Trash2 size={16} aria-hidden />
          </ActionIcon>
        </div>
      ))}
      <Group>
        <Button
          size="xs"
          variant="default"
          leftSection={<Plus size={14} aria-hidden />}
          onClick={() => {
            hasAdded.current = true;
            change([...entries, blank(items, root, path.length)]);
          }}
          data-testid={`add-${pathText(path)}`}
        >
          Add to {look.label}
        </Button>
      </Group>
    </Section>
  );
}

/** Aligns an entry's remove button: with the field below its label, with the frame of a group, or at the end below a description. */
function buttonPlaceOf(items: Schema, depth: number): "field" | "frame" | "box" | "end" {
  const { kind } = fieldOf(items, depth);
  if (kind === "group" || kind === "list") return "frame";
  if (kind === "boolean") return "box";
  return "description" in items ? "end" : "field";
}

function GroupField(props: ControlProps & { readonly properties: readonly Property[] }) {
  const { properties, path, value, onChange, required } = props;
  const look = useLook(props);
  const present = isObject(value) ? value : {};
  const fields = properties.map((property) => (
    <Control
      key={property.name}
      schema={property.schema}
      path={[...path, property.name]}
      label={property.name}
      required={property.required}
      value={present[property.name]}
      onChange={(next) => {
        const { [property.name]: _, ...others } = present;
        const changed = next === undefined ? others : { ...others, [property.name]: next };
        onChange(Object.keys(changed).length === 0 && !required ? undefined : changed);
      }}
    />
  ));
  if (path.length > 1) return <Section {...look}>{fields}</Section>;
  return (
    <Stack gap="sm" data-testid={look["data-testid"]}>
      {look.description !== undefined && (
        <Text size="sm" c="dimmed">
          {look.description}
        </Text>
      )}
      {look.error !== undefined && (
        <Text size="sm" c="var(--status-failed)" role="alert">
          {look.error}
        </Text>
      )}
      {fields}
    </Stack>
  );
}

function isObject(value: Json | undefined): value is { readonly [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isExact(value);
}

function Section({
  label,
  description,
  error,
  withAsterisk,
  children,
  ...rest
}: {
  readonly label: string;
  readonly description: string | undefined;
  readonly error: string | undefined;
  readonly withAsterisk: boolean;
  readonly children: ReactNode;
  readonly "data-testid": string;
}) {
  return (
    <Fieldset
      legend={
        <strong>
          {label}
          {withAsterisk && (
            <span className={classes["needed"]} aria-hidden>
              {" "}
              *
            </span>
          )}
        </strong>
      }
      p="sm"
      {...rest}
    >
      <Stack gap="sm">
        {description !== undefined && (
          <Text size="xs" c="dimmed">
            {description}
          </Text>
        )}
        {error !== undefined && (
          <Text size="sm" c="var(--status-failed)" role="alert">
            {error}
          </Text>
        )}
        {children}
      </Stack>
    </Fieldset>
  );
}

function JsonField(props: ControlProps) {
  const { path, value, onChange, required } = props;
  const { onBroken } = useForm();
  const [text, setText] = useState(() => written(value));
  const look = useLook(props);
  return (
    <JsonEditor
      label={look.label}
      description={look.description ?? "Any JSON value."}
      error={look.error}
      required={required}
      testId={look["data-testid"]}
      text={text}
      onText={(next) => {
        setText(next);
        const broken = jsonProblem(next) !== null;
        onBroken(pathText(path), broken);
        if (!broken) onChange(parsed(next));
      }}
    />
  );
}

/** The initial value of a form. */
export function emptyForm(schema: Schema): Json | undefined {
  return beginning(schema, schema, true);
}
