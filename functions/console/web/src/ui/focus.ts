// Where the keyboard goes on when what had the focus is gone.

import { useEffect } from "react";

// What was focused last outside of dialogs and menus, which belong to what opened them.
let last: HTMLElement | undefined;

const DIALOGS = "[role=dialog], [role=alertdialog]";
const OVERLAYS = `${DIALOGS}, [role=menu]`;

export const isDialogOpen = () => document.querySelector(DIALOGS) !== null;

// Where the focus is, outside of dialogs and menus, until the person points elsewhere.
let held: Place | undefined;

document.addEventListener("focusin", ({ target }) => {
  if (!(target instanceof HTMLElement) || target.closest(OVERLAYS)) return;
  last = target;
  held = placeOf(target);
});
window.addEventListener(
  "pointerdown",
  () => {
    held = undefined;
  },
  true,
);

/** Where an element is: in which row of which list, and in which parts of the page. */
interface Place {
  element: HTMLElement;
  row: Element | null;
  list: Element | null;
  index: number;
  /** The nearest one first. */
  around: Element[];
}

function placeOf(element: HTMLElement): Place {
  const row = element.closest("tr, li");
  const list = row?.parentElement ?? null;
  const index = row && list ? [...list.children].indexOf(row) : -1;
  const around: Element[] = [];
  for (let part = element.parentElement; part !== null && part !== document.body; part = part.parentElement) {
    around.push(part);
  }
  return { element, row, list, index, around };
}

const CONTROLS = "button:not(:disabled), a[href], input:not(:disabled), select:not(:disabled)";

/** What a person reaches first of a row: what can be done with it, or else anything. */
const controlIn = (row: Element | undefined | null) =>
  row?.querySelector<HTMLElement>(`.actions :is(${CONTROLS})`) ?? row?.querySelector<HTMLElement>(CONTROLS);

/** The heading of the nearest part that is still there. */
function headingOf(around: Element[]): HTMLElement | null {
  for (const part of [...around, document.querySelector("main")]) {
    const heading = part?.isConnected ? part.querySelector<HTMLElement>("h1, h2") : null;
    if (heading) return heading;
  }
  return null;
}

/** The element itself, the next row, the one before it, or the heading of the list: the first that is there. */
function nextTo({ element, row, list, index, around }: Place): HTMLElement | null {
  if (element.isConnected) return element;
  if (row?.isConnected) return controlIn(row) ?? headingOf(around);
  const rows = list?.isConnected ? list.children : [];
  return controlIn(rows[index]) ?? controlIn(rows[index - 1]) ?? headingOf(around);
}

/** Whether nothing has the focus, and no dialog or menu is about to take it. */
const isLost = () =>
  (document.activeElement === null || document.activeElement === document.body) &&
  document.querySelector(OVERLAYS) === null;

/** Moves the lost focus, if there is a place for it. */
function goOn(place: Place) {
  const next = nextTo(place);
  if (next === null) return;
  // A heading takes the focus from a script only.
  if (!next.matches(CONTROLS)) next.tabIndex = -1;
  next.focus({ preventScroll: true });
}

// What has the focus may go with a part of the page: a button that was pressed, or a link to another view.
let isWaiting = false;
new MutationObserver(() => {
  if (isWaiting || held === undefined || held.element.isConnected) return;
  isWaiting = true;
  // The page itself may have a better place for it.
  setTimeout(() => {
    isWaiting = false;
    if (held !== undefined && !held.element.isConnected && isLost()) goOn(held);
  });
}).observe(document, { childList: true, subtree: true });

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
    if (isLost()) goOn(place);
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
