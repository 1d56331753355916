// A field for a text of many lines, with their numbers.

import { type KeyboardEvent, type RefObject, useMemo, useState } from "react";

export type Field = RefObject<HTMLTextAreaElement | null>;

/** Puts the cursor there. Both numbers begin with 1. */
export function goTo(field: Field, line: number, column: number) {
  const box = field.current;
  if (!box) return;
  const before = box.value.split("\n").slice(0, line - 1).join("\n").length;
  const at = Math.min(before + (line > 1 ? 1 : 0) + column - 1, box.value.length);
  box.focus();
  box.setSelectionRange(at, at);
  const height = box.clientHeight / box.value.split("\n").length;
  box.parentElement?.scrollTo({ top: Math.max(0, (line - 5) * height) });
}

/** Types a text in place of what is selected, so that the browser can undo it. */
const type = (text: string) => document.execCommand("insertText", false, text);

/** Names that are offered at once. */
const OFFERED_MAX = 8;

export function Editor({
  label,
  field,
  value,
  onChange,
  onSave,
  marks,
  names = [],
}: {
  label: string;
  field: Field;
  value: string;
  /** Without it, the text is to read. */
  onChange?: (value: string) => void;
  onSave?: () => void;
  /** Lines with an error or a warning. */
  marks?: ReadonlyMap<number, "bad" | "warn">;
  /** What can stand in `${…}`. */
  names?: string[];
}) {
  const [begun, setBegun] = useState<string>();
  const count = value.split("\n").length;
  const offered = useMemo(
    () => (begun === undefined ? [] : names.filter((name) => name.startsWith(begun) && name !== begun).slice(0, OFFERED_MAX)),
    [names, begun],
  );
  const look = (box: HTMLTextAreaElement) =>
    setBegun(/\$\{([^{}\s]*)$/.exec(box.value.slice(0, box.selectionStart))?.[1]);
  const press = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    const box = event.currentTarget;
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      onSave?.();
    } else if (event.key === "Enter" && onChange && !event.nativeEvent.isComposing) {
      const line = box.value.slice(0, box.selectionStart).split("\n").at(-1) ?? "";
      const indent = /^ */.exec(line)?.[0] ?? "";
      if (indent === "") return;
      event.preventDefault();
      type(`\n${indent}`);
    }
  };
  const complete = (name: string) => {
    const box = field.current;
    if (!box) return;
    box.focus();
    const rest = name.slice(begun?.length ?? 0);
    type(box.value[box.selectionEnd] === "}" ? rest : `${rest}}`);
  };
  return (
    <>
      <div className="editor">
        <div className="gutter" aria-hidden="true">
          {Array.from({ length: count }, (_, line) => (
            <span key={line} className={marks?.get(line + 1)}>
              {line + 1}
            </span>
          ))}
        </div>
        <textarea
          ref={field}
          aria-label={label}
          value={value}
          readOnly={!onChange}
          rows={count}
          wrap="off"
          spellCheck={false}
          autoCapitalize="off"
          autoComplete="off"
          onChange={(event) => onChange?.(event.target.value)}
          onSelect={(event) => look(event.currentTarget)}
          onKeyDown={press}
        />
      </div>
      {offered.length > 0 && onChange && (
        <ul className="offers" aria-label="Values that begin so">
          {offered.map((name) => (
            <li key={name}>
              <button type="button" className="button small" onClick={() => complete(name)}>
                <code>{name}</code>
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
