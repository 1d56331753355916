// Where the keyboard goes on after a dialog, when what opened it is gone.

import { useEffect } from "react";

// What was focused last outside of dialogs and menus, which belong to what opened them.
let last: HTMLElement | undefined;

const OVERLAYS = "[role=dialog], [role=alertdialog], [role=menu]";

document.addEventListener("focusin", ({ target }) => {
  if (target instanceof HTMLElement && !target.closest(OVERLAYS)) last = target;
});

/** Where an element is: in which row of which list, and below which heading. */
interface Place {
  element: HTMLElement;
  row: Element | null;
  list: Element | null;
  index: number;
  card: Element | null;
}

function placeOf(element: HTMLElement): Place {
  const row = element.closest("tr, li");
  const list = row?.parentElement ?? null;
  const index = row && list ? [...list.children].indexOf(row) : -1;
  return { element, row, list, index, card: element.closest(".card") };
}

const CONTROLS = "button:not(:disabled), a[href], input:not(:disabled), select:not(:disabled)";

/** What a person reaches first of a row: what can be done with it, or else anything. */
const controlIn = (row: Element | undefined | null) =>
  row?.querySelector<HTMLElement>(`.actions :is(${CONTROLS})`) ?? row?.querySelector<HTMLElement>(CONTROLS);

const headingIn = (part: Element | null) => (part?.isConnected ? part.querySelector<HTMLElement>("h1, h2") : null);

/** The element itself, the next row, the one before it, or the heading of the list: the first that is there. */
function nextTo({ element, row, list, index, card }: Place): HTMLElement | null {
  if (element.isConnected) return element;
  if (row?.isConnected) return controlIn(row) ?? headingIn(card);
  const rows = list?.isConnected ? list.children : [];
  const found = controlIn(rows[index]) ?? controlIn(rows[index - 1]);
  return found ?? headingIn(card) ?? headingIn(document.querySelector("main"));
}

/** How long a row may take to go after its dialog, and how often that is looked at, in milliseconds. */
const WATCHED = 2_000;
const STEP = 50;

/** Waits until the focus is lost, and moves it. Ends early when the person moves it. */
function follow(place: Place) {
  const until = Date.now() + WATCHED;
  const stop = () => {
    clearInterval(timer);
    window.removeEventListener("keydown", stop, true);
    window.removeEventListener("pointerdown", stop, true);
  };
  const timer = setInterval(() => {
    if (Date.now() > until) return stop();
    const focused = document.activeElement;
    if (focused !== null && focused !== document.body) return;
    const next = nextTo(place);
    if (next === null) return;
    // A heading takes the focus from a script only.
    if (!next.matches(CONTROLS)) next.tabIndex = -1;
    next.focus();
  }, STEP);
  window.addEventListener("keydown", stop, true);
  window.addEventListener("pointerdown", stop, true);
}

/** For a dialog: when it closes, the focus goes to what opened it, or to what has its place. */
export function useFocusAfter() {
  useEffect(() => {
    const place = last && placeOf(last);
    return () => {
      if (place) follow(place);
    };
  }, []);
}
