// Small parts of pages.

import { type ReactNode, useEffect, useId, useRef, useState, useSyncExternalStore } from "react";
import {
  Button,
  type ButtonProps,
  Dialog,
  Heading,
  Input,
  Label,
  Menu,
  MenuItem,
  MenuTrigger,
  Modal,
  ModalOverlay,
  Popover,
  SearchField,
  Text,
  TextArea,
  TextField,
} from "react-aria-components";
import { ApiError, keepDraft, session, signInAddress, startAnew } from "../api/client";
import { ago, date, instant, number, visible } from "../format";
import { MASK, textOf } from "../values";
import { useFocusAfter } from "./focus";
import { type IconName, Icon } from "./icons";

export function useTitle(...parts: string[]) {
  const title = [...parts, "Statewright"].join(" · ");
  useEffect(() => {
    document.title = visible(title);
  }, [title]);
}

/** The time now, read again after this number of milliseconds. */
export function useNow(every: number): number {
  const [now, set] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/**
 * What is typed, which reaches the address only after this number of milliseconds without a key. It must not lose a
 * letter while what it filters is drawn.
 */
export function useTyped(
  value: string,
  onChange: (value: string) => void,
  delay = 0,
): [string, (value: string) => void] {
  const [typed, setTyped] = useState(value);
  const sent = useRef<string[]>([]);
  const timer = useRef(0);
  useEffect(() => {
    const own = sent.current.indexOf(value);
    sent.current.splice(0, own + 1);
    // Somebody followed a link, or went back.
    if (own < 0) setTyped(value);
  }, [value]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const type = (next: string) => {
    setTyped(next);
    window.clearTimeout(timer.current);
    const send = () => {
      sent.current.push(next);
      onChange(next);
    };
    if (delay === 0) send();
    else timer.current = window.setTimeout(send, delay);
  };
  return [typed, type];
}

// One clock for all times on a page.
const MINUTES = {
  listeners: new Set<() => void>(),
  now: Date.now(),
  timer: 0,
  listen(listener: () => void) {
    if (MINUTES.listeners.size === 0) {
      MINUTES.now = Date.now();
      MINUTES.timer = window.setInterval(() => {
        MINUTES.now = Date.now();
        for (const listener of MINUTES.listeners) listener();
      }, 30_000);
    }
    MINUTES.listeners.add(listener);
    return () => {
      MINUTES.listeners.delete(listener);
      if (MINUTES.listeners.size === 0) window.clearInterval(MINUTES.timer);
    };
  },
};

/** A time as its distance from now, with the date on hovering and for assistive tools. */
export function Time({ at }: { at: number | string | null | undefined }) {
  const now = useSyncExternalStore(MINUTES.listen, () => MINUTES.now);
  if (at === undefined || at === null || at === 0) return <span className="faint">–</span>;
  const when = instant(at);
  if (Number.isNaN(when)) return <span>{at}</span>;
  // It happened after the clock's last step.
  const isNew = when > now && when < now + 60_000;
  return (
    <time dateTime={new Date(when).toISOString()} title={date(when)}>
      {ago(when, isNew ? when : now)}
    </time>
  );
}

export type Tone = "good" | "bad" | "busy" | "warn" | "plain";

export function Badge({ tone, icon, children }: { tone: Tone; icon?: IconName; children: ReactNode }) {
  return (
    <span className={`badge ${tone}`}>
      {icon && <Icon name={icon} />}
      {children}
    </span>
  );
}

/** How an update ended, in a word. */
export function Result({ result }: { result: string }) {
  switch (result) {
    case "succeeded":
      return <Badge tone="good" icon="check">Succeeded</Badge>;
    case "failed":
      return <Badge tone="bad" icon="cross">Failed</Badge>;
    case "cancelled":
      return <Badge tone="warn" icon="cross">Cancelled</Badge>;
    case "in-progress":
    case "running":
      return <Badge tone="busy" icon="running">Running</Badge>;
    case "not-started":
      return <Badge tone="plain">Not started</Badge>;
    default:
      return <Badge tone="plain">{result}</Badge>;
  }
}

const SIGNS: Record<string, [string, string]> = {
  create: ["+", "created"],
  update: ["~", "updated"],
  delete: ["−", "deleted"],
  replace: ["±", "replaced"],
  import: ["=", "imported"],
  refresh: ["↻", "refreshed"],
  read: ["›", "read"],
};

/** Counts by operation, such as +3 ~1. */
export function Changes({ counts }: { counts: Record<string, number> | null | undefined }) {
  const shown = Object.entries(counts ?? {}).filter(([operation, count]) => count > 0 && operation in SIGNS);
  if (shown.length === 0) return <span className="faint">{counts ? "no changes" : "–"}</span>;
  return (
    <span className="changes">
      {shown.map(([operation, count]) => {
        const [sign, word] = SIGNS[operation] ?? ["", operation];
        return (
          <span key={operation} className={`op-${operation}`} title={`${count} ${word}`}>
            <span aria-hidden="true">
              {sign}
              {count}
            </span>
            <span className="unseen">
              {count} {word}{" "}
            </span>
          </span>
        );
      })}
    </span>
  );
}

/** The top of a page about one thing: what it belongs to, its name, and what can be done with it. */
export function Top({
  above,
  icon,
  name,
  children,
}: {
  above: ReactNode;
  icon: IconName;
  name: string;
  children?: ReactNode;
}) {
  return (
    <>
      <div className="crumbs">
        {above}
        <span aria-hidden="true">/</span>
      </div>
      <div className="title-row">
        <h1>
          <Icon name={icon} /> {name}
        </h1>
        {children}
      </div>
    </>
  );
}

export function Notice({ tone = "plain", children }: { tone?: Tone; children: ReactNode }) {
  return (
    <div className={`notice ${tone}`} role={tone === "bad" ? "alert" : undefined}>
      {children}
    </div>
  );
}

export function Empty({ icon, title, children }: { icon?: IconName; title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      {icon && <Icon name={icon} />}
      <p className="empty-title">{title}</p>
      {children && <div className="faint">{children}</div>}
    </div>
  );
}

const TITLES_BY_STATUS: Record<number, string> = {
  0: "No answer",
  401: "Your session is over",
  403: "Not allowed",
  404: "This is not here",
  413: "This is too large",
  429: "Too many requests",
  503: "The server is busy or not ready",
};

// What has a reason says more than its status.
const TITLES_BY_REASON: Record<string, string> = {
  access_changed: "Somebody else changed this meanwhile",
  environment_changed: "Somebody else changed this meanwhile",
  label_policy_changed: "Somebody else changed this meanwhile",
  label_policy_same: "Somebody else made this change meanwhile",
  nothing_to_cancel: "It has ended by itself meanwhile",
  other_user: "Somebody else is signed in",
  revision_not_found: "This revision is not here",
  secret_elsewhere: "The server has no key for this secret",
  sign_in_too_old: "Sign in again",
  stack_locked: "An update holds the stack",
  stack_on_hold: "A person holds the stack",
  stack_protected: "It is protected",
  stack_version_erased: "This version is erased",
  stack_version_not_found: "This version is not here",
  state_has_resources: "It still has resources",
  state_lock_lost: "Another lock holds it now",
  state_locked: "Somebody holds its lock",
  state_protected: "It is protected",
  state_version_not_found: "This version is not here",
  too_large_for_gateway: "This is too large for the gateway",
};

// What is safe, and what to do, if the server's text does not say it.
const ADVICE_BY_REASON: Record<string, string> = {
  access_changed: "Close this, look at what is there now, and repeat your change.",
  label_policy_changed: "Your change was not saved. The form now shows theirs: look, then try again.",
  nothing_to_cancel: "What it saved is the newest version. Close this: the page shows how it ended.",
  role_too_low: "Nothing was changed. If you could do this before, your rights were changed meanwhile.",
  stack_version_erased: "Newer versions are kept, and the stack itself is not touched.",
  stack_locked: "Nothing was changed. Wait for the update, or cancel it on the page Locks.",
  stack_on_hold: "Nothing was changed. Ask the holder, or release it on the page Locks.",
};

function SignIn() {
  return (
    <a className="button" href={signInAddress()} target="_blank" rel="noopener">
      Sign in <span className="unseen">(in a new tab)</span>
    </a>
  );
}

/** Loads the page again, for the person who is signed in now. */
function Reload() {
  return (
    <Button className="button" onPress={startAnew}>
      Reload the page
    </Button>
  );
}

/** Says that the session is over or of somebody else, on a page that stays because something on it would be lost. */
export function SessionOver() {
  const isOver = useSyncExternalStore(session.listen, () => session.isOver);
  const other = useSyncExternalStore(session.listen, () => session.other);
  if (other !== undefined) {
    return (
      <div className="notice warn row" role="alert">
        <span>
          <strong>You are signed in as {other} now.</strong> This page is of {session.login}, so it sends nothing any
          more. Reloading shows what {other} may see, and drops what is not saved.
        </span>
        <span className="spring" />
        <Reload />
      </div>
    );
  }
  if (!isOver) return null;
  return (
    <div className="notice warn row" role="alert">
      <span>
        <strong>Your session is over.</strong> This page stays as it is: sign in in a new tab, then go on here.
      </span>
      <span className="spring" />
      <SignIn />
    </div>
  );
}

/** What went wrong, whether anything is lost, and what to do. */
export function Failure({ error, again }: { error: unknown; again?: () => void }) {
  const isRefused = error instanceof ApiError && error.status === 403;
  const refused = error instanceof ApiError ? error : undefined;
  const title =
    (refused && (TITLES_BY_REASON[refused.reason] ?? TITLES_BY_STATUS[refused.status])) ?? "This did not work";
  const advice = refused && ADVICE_BY_REASON[refused.reason];
  const message = error instanceof Error ? visible(error.message) : "Unknown error";
  const text = `${message.charAt(0).toUpperCase()}${message.slice(1)}`;
  return (
    <div className={isRefused ? "notice" : "notice bad"} role="alert">
      <p>
        {isRefused && <Icon name="lock" />} <strong>{title}.</strong> {text}
        {text.endsWith(".") ? "" : "."}
        {advice && ` ${advice}`}
      </p>
      {refused?.status === 401 && <SignIn />}
      {refused?.reason === "other_user" && <Reload />}
      {again && !isRefused && (
        <Button className="button" onPress={again}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function Waiting({ rows = 3 }: { rows?: number }) {
  return (
    <div className="waiting" role="status">
      <span className="unseen">Loading</span>
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} className="bone" />
      ))}
    </div>
  );
}

/** The data of a query; or that it is on its way, or why it is not. Data that was there before stays. */
export function Loaded<T>({
  of,
  rows,
  children,
}: {
  of: { data: T | undefined; error: unknown; refetch: () => unknown };
  rows?: number;
  children: (data: T) => ReactNode;
}) {
  if (of.data === undefined) {
    return of.error ? <Failure error={of.error} again={() => void of.refetch()} /> : <Waiting rows={rows} />;
  }
  return (
    <>
      {of.error !== null && of.error !== undefined && <Failure error={of.error} again={() => void of.refetch()} />}
      {children(of.data)}
    </>
  );
}

export function Card({
  title,
  count,
  actions,
  children,
}: {
  title: ReactNode;
  count?: number;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className="card">
      <header className="card-head">
        <h2>
          {title}
          {count !== undefined && <span className="count">{count}</span>}
        </h2>
        {actions && <div className="row">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

/** Characters of a value that are drawn, at most. The button that copies it has all of them. */
const CODE_CHARS_MAX = 100_000;

/** A value as text. A long one scrolls, so the keyboard reaches it. */
export function Code({ value, className }: { value: unknown; className?: string }) {
  const whole = textOf(value);
  const text = visible(whole.slice(0, CODE_CHARS_MAX));
  // As many letters fit into a narrow column without scrolling.
  const isLong = text.length > 150 || text.split("\n").length > 8;
  return (
    <code className={className} tabIndex={isLong ? 0 : undefined}>
      {text}
      {whole.length > CODE_CHARS_MAX && ` … and ${number(whole.length - CODE_CHARS_MAX)} more characters`}
    </code>
  );
}

/**
 * A button that is of no use for a while, such as while it works or before there is something to save. It keeps the
 * focus then, which a disabled one loses.
 */
export function Act({ isOff, onPress, ...props }: Omit<ButtonProps, "isDisabled" | "type"> & { isOff: boolean }) {
  return <Button {...props} aria-disabled={isOff || undefined} onPress={isOff ? undefined : onPress} />;
}

/** A value that stays masked until a person asks for it. */
export function Masked({ value }: { value: unknown }) {
  const [isShown, show] = useState(false);
  return (
    <div className="value">
      <Code className={isShown ? "" : "masked"} value={isShown ? value : MASK} />
      <Button className="button small" onPress={() => show(!isShown)}>
        {isShown ? "Hide" : "Show"}
      </Button>
    </div>
  );
}

/** Names with their values. */
export function Facts({ of }: { of: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A table that scrolls by itself if it is wider than the page. */
export function Table({ label, head, children }: { label: string; head: ReactNode[]; children: ReactNode }) {
  return (
    <div className="table" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((name, column) => (
              <th key={column} scope="col">
                {name === "" ? <span className="unseen">Actions</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function Search({
  label,
  value,
  onChange,
  placeholder,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
}) {
  return (
    <SearchField className="search" aria-label={label} value={value} onChange={onChange}>
      <Icon name="search" />
      <Input placeholder={placeholder ?? label} />
      <Button className="clear" aria-label="Clear">
        <Icon name="cross" />
      </Button>
    </SearchField>
  );
}

export function Select({
  label,
  value,
  onChange,
  options,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  options: [string, string][];
}) {
  return (
    <label className="select">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {options.map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Some labels or tags of a row. */
const LABELS_SHOWN = 4;

export function Labels({ of }: { of: Record<string, unknown> }) {
  return Object.entries(of)
    .slice(0, LABELS_SHOWN)
    .map(([key, value]) => (
      <span key={key} className="label ellipsis">
        {visible(`${key}=${String(value)}`)}
      </span>
    ));
}

/** Whether a name, with its labels or tags, has all the words that were typed. */
export function hasWords(typed: string, name: string, labels: Record<string, unknown>): boolean {
  const text = [name, ...Object.entries(labels).map(([key, value]) => `${key}=${value}`)].join(" ").toLowerCase();
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((word) => text.includes(word));
}

/** In which group a row is: its project by default, or what a label or tag says. */
export function groupOf(group: string, project: string, labels: Record<string, unknown>): string {
  if (group === NO_GROUP) return "";
  return group === "" ? project : String(labels[group] ?? `${WITHOUT}${group}`);
}

const NO_GROUP = "none";
const WITHOUT = "Without ";

/** Rows by group. What has no such label is last. */
export function Groups<T>({
  rows,
  by,
  nameOf,
  children,
}: {
  rows: T[];
  /** `none`, or any other grouping. */
  by: string;
  nameOf: (row: T) => string;
  children: (row: T) => ReactNode;
}) {
  const isWithout = (name: string) => name.startsWith(WITHOUT);
  const groups = [...new Set(rows.map(nameOf))].sort((a, b) => Number(isWithout(a)) - Number(isWithout(b)));
  return groups.map((name) => (
    <section key={name} className="card" aria-label={name || "All"}>
      {by !== NO_GROUP && (
        <header className="card-head slim">
          <h2>{name}</h2>
        </header>
      )}
      <ul className="items">{rows.filter((row) => nameOf(row) === name).map(children)}</ul>
    </section>
  ));
}

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [copied, set] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => set(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <Button
      className="icon-button"
      aria-label={copied ? "Copied" : label}
      onPress={() => void navigator.clipboard.writeText(text).then(() => set(true))}
    >
      <Icon name={copied ? "check" : "copy"} />
    </Button>
  );
}

/** Asks before something is done that others notice. */
export function Confirm({
  title,
  children,
  action,
  needsReason = false,
  isDangerous = true,
  isReady = true,
  onClose,
  run,
}: {
  title: string;
  children: ReactNode;
  action: string;
  needsReason?: boolean;
  isDangerous?: boolean;
  /** Whether everything that the action needs is there. */
  isReady?: boolean;
  onClose: () => void;
  run: (reason: string) => Promise<void>;
}) {
  const [reason, setReason] = useState("");
  const [isTyped, setTyped] = useState(false);
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<unknown>();
  const dialog = useRef<HTMLElement>(null);
  const isHere = useRef(true);
  useEffect(() => {
    isHere.current = true;
    return () => {
      isHere.current = false;
    };
  }, []);
  const warning = isRunning
    ? "The server has not answered yet. Leaving does not stop what it does, and hides how it ends."
    : "What you typed is not saved, and leaving drops it.";
  useEffect(() => keepDraft(isTyped || isRunning ? warning : undefined), [isTyped, isRunning, warning]);
  useFocusAfter();
  const go = async () => {
    setRunning(true);
    setError(undefined);
    try {
      await run(reason.trim());
      // Another dialog may have its place.
      if (isHere.current) onClose();
    } catch (error) {
      setError(error);
      setRunning(false);
    }
  };
  return (
    <ModalOverlay
      className="overlay"
      isOpen
      isDismissable={!isRunning}
      // How it ends would not be seen.
      isKeyboardDismissDisabled={isRunning}
      // A press outside would lose what was typed.
      shouldCloseOnInteractOutside={() => !dialog.current?.querySelector("input, textarea")}
      onOpenChange={(isOpen) => !isOpen && onClose()}
    >
      <Modal className="modal">
        <Dialog ref={dialog} className="dialog" role="alertdialog">
          <Heading slot="title">{title}</Heading>
          <div className="form" onChange={() => setTyped(true)}>
            {children}
            {needsReason && (
              <TextField value={reason} onChange={setReason} isRequired maxLength={200}>
                <Label>Reason, for the audit trail</Label>
                <TextArea rows={2} />
              </TextField>
            )}
          </div>
          {error !== undefined && <Failure error={error} />}
          <div className="row end">
            <Act className="button" onPress={onClose} isOff={isRunning}>
              Leave it
            </Act>
            <Act
              className={isDangerous ? "button bad" : "button primary"}
              onPress={() => void go()}
              isOff={isRunning || !isReady || (needsReason && reason.trim() === "")}
            >
              {action}
            </Act>
          </div>
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

/** Shows what the server shows only once, such as a secret. */
export function Once({
  title,
  text,
  label,
  children,
  onClose,
}: {
  title: string;
  text: string;
  /** What is copied. */
  label: string;
  children: ReactNode;
  onClose: () => void;
}) {
  useEffect(() => keepDraft("What is shown here is shown only once, and leaving loses it."), []);
  useFocusAfter();
  return (
    // Only the button closes it: the text would be lost.
    <ModalOverlay className="overlay" isOpen isKeyboardDismissDisabled>
      <Modal className="modal">
        <Dialog className="dialog">
          <Heading slot="title">{title}</Heading>
          {children}
          <div className="value once">
            <code>{text}</code>
            <Copy text={text} label={`Copy ${label}`} />
          </div>
          <div className="row end">
            <Button className="button primary" onPress={onClose}>
              I have it
            </Button>
          </div>
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

/** A line of a form, with texts that the browser offers for it. */
export function Line({
  label,
  value,
  onChange,
  hint,
  offered = [],
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  hint?: ReactNode;
  offered?: string[];
}) {
  const list = useId();
  return (
    <TextField className="field" value={value} onChange={onChange}>
      <Label>{label}</Label>
      <Input list={offered.length > 0 ? list : undefined} autoComplete="off" autoCapitalize="none" spellCheck={false} />
      {hint && (
        <Text className="faint" slot="description">
          {hint}
        </Text>
      )}
      {offered.length > 0 && (
        <datalist id={list}>
          {offered.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </TextField>
  );
}

/** What can be done with one row of a table. */
export function RowMenu({
  of,
  text = "Change",
  actions,
}: {
  of: string;
  /** What the button says. */
  text?: string;
  actions: [string, () => void][];
}) {
  const label = `${text} ${of}`;
  return (
    <MenuTrigger>
      <Button className="button small" aria-label={label}>
        {text} <Icon name="down" />
      </Button>
      <Popover className="popover" placement="bottom end">
        <Menu className="menu" aria-label={label} onAction={(key) => actions[Number(key)]?.[1]()}>
          {actions.map(([text], index) => (
            <MenuItem key={text} id={index}>
              {text}
            </MenuItem>
          ))}
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}

/** Versions that a choice offers. An address can name any. */
const OFFERED_MAX = 500;

/** Chooses any two versions to compare. */
export function Compare({
  newest,
  from,
  to,
  onChange,
}: {
  newest: number;
  from: number;
  to: number;
  onChange: (from: number, to: number) => void;
}) {
  const [chosen, choose] = useState({ from, to });
  useEffect(() => choose({ from, to }), [from, to]);
  const offered = Array.from({ length: Math.min(newest, OFFERED_MAX) }, (_, index) => newest - index);
  const options = [...new Set([...offered, chosen.from, chosen.to])].map((version): [string, string] => [
    String(version),
    String(version),
  ]);
  return (
    <>
      <Select
        label="Compare"
        value={String(chosen.from)}
        onChange={(from) => choose({ ...chosen, from: Number(from) })}
        options={options}
      />
      <Select
        label="with"
        value={String(chosen.to)}
        onChange={(to) => choose({ ...chosen, to: Number(to) })}
        options={options}
      />
      <Act
        className="button small"
        isOff={chosen.from === chosen.to}
        onPress={() => onChange(chosen.from, chosen.to)}
      >
        Compare
      </Act>
    </>
  );
}

/** Reads the next page of a list. */
export function More({ onPress, isLoading }: { onPress: () => void; isLoading: boolean }) {
  return (
    <div className="more">
      <Act className="button" onPress={onPress} isOff={isLoading}>
        {isLoading ? "Loading" : "Show more"}
      </Act>
    </div>
  );
}
