/** The command palette: open a page or run an action by typing part of its name. */

import { Kbd, Loader, Modal, Text, TextInput } from "@mantine/core";
import { Search } from "lucide-react";
import { useId, useState, type KeyboardEvent } from "react";

import { escapeBidi } from "../bidi.ts";
import { Keys } from "../ShortcutList.tsx";
import classes from "./Palette.module.css";
import { useCommands, type Command, type CommandGroup } from "./useCommands.ts";

interface Props {
  readonly opened: boolean;
  readonly onClose: () => void;
  readonly showShortcuts: () => void;
}

export function Palette({ opened, onClose, showShortcuts }: Props) {
  // After a navigation, the new page has the focus.
  const [left, setLeft] = useState(false);
  // Each opening starts empty, even if the previous one is still fading out.
  const [opening, setOpening] = useState({ opened, count: 0 });
  if (opening.opened !== opened) {
    setOpening({ opened, count: opening.count + (opened ? 1 : 0) });
    if (opened) setLeft(false);
  }
  const choose = (command: Command) => {
    setLeft(command.leaves);
    onClose();
    command.run();
  };
  return (
    <Modal.Root
      opened={opened}
      onClose={onClose}
      returnFocus={!left}
      size="lg"
      yOffset="12vh"
      transitionProps={{ duration: 100 }}
    >
      <Modal.Overlay />
      <Modal.Content aria-label="Command palette" data-testid="palette">
        <Chooser key={opening.count} choose={choose} showShortcuts={showShortcuts} />
      </Modal.Content>
    </Modal.Root>
  );
}

function Chooser({ choose, showShortcuts }: { choose: (command: Command) => void; showShortcuts: () => void }) {
  const [typed, setTyped] = useState("");
  const [wanted, setWanted] = useState<string | null>(null);
  const { groups, isSearching } = useCommands(typed, showShortcuts);
  const list = useId();
  const all = groups.flatMap(({ commands }) => commands);
  // The command that was selected with the keyboard, as long as it still matches.
  const present = all.find(({ id }) => id === wanted) ?? all[0];
  const place = present === undefined ? -1 : all.indexOf(present);

  const move = (to: number) => {
    const next = all[(to + all.length) % all.length];
    if (next === undefined) return;
    setWanted(next.id);
    document.getElementById(optionId(list, next))?.scrollIntoView({ block: "nearest" });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Record<string, () => void> = {
      ArrowDown: () => move(place + 1),
      ArrowUp: () => move(place - 1),
      Enter: () => present !== undefined && choose(present),
    };
    const act = event.nativeEvent.isComposing ? undefined : moves[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  };
  return (
    <>
      <TextInput
        role="combobox"
        aria-label="Search pages, runs, workflows, agents and actions"
        aria-expanded
        aria-autocomplete="list"
        aria-controls={list}
        aria-activedescendant={present === undefined ? undefined : optionId(list, present)}
        placeholder="Page, run, workflow, agent…"
        leftSection={<Search size={16} aria-hidden />}
        rightSection={isSearching ? <Loader size="xs" aria-hidden /> : null}
        size="md"
        variant="unstyled"
        className={classes["input"]}
        data-autofocus
        autoComplete="off"
        spellCheck={false}
        maxLength={200}
        value={typed}
        onChange={(event) => {
          setTyped(event.currentTarget.value);
          setWanted(null);
        }}
        onKeyDown={onKeyDown}
        data-testid="palette-input"
      />
      <div id={list} role="listbox" aria-label="Commands" className={classes["list"]}>
        {groups.map((group) => (
          <Group key={group.name} group={group} list={list} present={present} choose={choose} />
        ))}
      </div>
      {all.length === 0 && (
        <Text size="sm" c="dimmed" className={classes["nothing"]} role="status">
          {isSearching ? "Searching…" : "No matches. To find a run, type the beginning of its ID."}
        </Text>
      )}
      <div className={classes["foot"]} aria-hidden>
        <span>
          <Kbd>↑</Kbd> <Kbd>↓</Kbd> select
        </span>
        <span>
          <Kbd>Enter</Kbd> open
        </span>
        <span>
          <Kbd>Esc</Kbd> close
        </span>
      </div>
    </>
  );
}

interface GroupProps {
  readonly group: CommandGroup;
  readonly list: string;
  readonly present: Command | undefined;
  readonly choose: (command: Command) => void;
}

function Group({ group, list, present, choose }: GroupProps) {
  const heading = `${list}-${group.name}`;
  return (
    <div role="group" aria-labelledby={heading}>
      <div id={heading} role="presentation" className={classes["heading"]}>
        {group.name}
      </div>
      {group.commands.map((command) => {
        const { icon: Icon, name, hint, keys } = command;
        return (
          <div
            key={command.id}
            id={optionId(list, command)}
            role="option"
            aria-selected={command === present}
            className={classes["option"]}
            // Keep the focus in the field.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => choose(command)}
            data-testid="palette-option"
            data-command={command.id}
          >
            <Icon size={16} aria-hidden className={classes["icon"]} />
            <span className={classes["name"]}>{escapeBidi(name)}</span>
            {hint !== undefined && <span className={classes["hint"]}>{escapeBidi(hint)}</span>}
            {keys !== undefined && (
              <span className={classes["keys"]} aria-hidden>
                <Keys keys={keys} />
              </span>
            )}
          </div>
        );
      })}
    </div>
  );
}

function optionId(list: string, command: Command): string {
  return `${list}-${command.id}`;
}
