// Drives Chromium by commands: one JSON object per line on standard input, one answer per line on standard output.
// It ends with its input.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import readline from "node:readline";
import chromium from "@sparticuz/chromium";
import { AxeBuilder } from "@axe-core/playwright";
import { chromium as playwright } from "playwright-core";

const browser = await playwright.launch({
  executablePath: process.env.CHROMIUM,
  // With one process, the browser ends with its first context.
  args: chromium.args.filter((arg) => arg !== "--single-process" && arg !== "--no-zygote"),
  headless: true,
});
let context;
// Of a session that a test ended for a while.
let cookies = [];
let page;
let problems = [];
// Whether our server seems not to run.
let isAway = false;
// Requests that wait, while all but those that read do.
let held;
// A page of its own, which may look at pictures.
let eye;

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const isOurs = () => !page.url().includes("/interaction/");

/** Whether the element with the focus shows that it has it. Runs in the page. */
function isFocusShown() {
  const element = document.activeElement;
  if (element === null || element === document.body) return false;
  // An item that is chosen with arrow keys, while a field or a tree around it has the focus.
  const active = document.getElementById(element.getAttribute("aria-activedescendant") ?? "");
  const isOutlined = (one) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(one);
    return outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 1;
  };
  const isFilled = (one) => one.matches("[data-focused]") && getComputedStyle(one).backgroundColor !== "rgba(0, 0, 0, 0)";
  const isDrawn = (one) => Number.parseFloat(getComputedStyle(one).strokeWidth) >= 3;
  if (active !== null) return isOutlined(active) || isFilled(active);
  // The editor has its outline around its lines too, and a node of a graph draws its own.
  const around = element.parentElement !== null && isOutlined(element.parentElement);
  const inMenu = element.getAttribute("role")?.startsWith("menuitem") === true && isFilled(element);
  return isOutlined(element) || around || inMenu || [...element.querySelectorAll(":scope > rect")].some(isDrawn);
}

/** Whether the focus is on something that is seen, outside of dialogs and menus that close. Runs in the page. */
function isFocusKept() {
  const element = document.activeElement;
  if (document.querySelector("[role=dialog], [role=alertdialog], [role=menu]") !== null) return false;
  if (element === null || element.closest("main, header, nav") === null) return false;
  const { width, height } = element.getBoundingClientRect();
  return width > 0 && height > 0 && element.checkVisibility({ visibilityProperty: true });
}

/** Addresses that lead to anything but a page. Runs in the page. */
function addressesThatDo() {
  const names = ["href", "xlink:href", "src", "action", "formaction"];
  const found = [...document.querySelectorAll("*")].flatMap((one) => names.map((name) => one.getAttribute(name)));
  const isPage = (address) => ["http:", "https:"].includes(new URL(address, document.baseURI).protocol);
  return found.filter((address) => address !== null && !(URL.canParse(address, document.baseURI) && isPage(address)));
}

/** Whether one of these elements has the focus, or is chosen in what has it. Runs in the page. */
function haveFocus(elements) {
  const active = document.activeElement;
  const chosen = document.getElementById(active?.getAttribute("aria-activedescendant") ?? "");
  return elements.some((one) => one === active || one === chosen);
}

/** Waits for an element that is clicked. Parts that still load would move it from under the pointer. */
async function comes(what) {
  await page.waitForSelector(what);
  // The first of those that are seen, until there is none. The log of an update that runs may stay empty.
  const waiting = page.locator(".waiting:visible:not([aria-busy=true] *)").first();
  const load = (timeout) => waiting.waitFor({ state: "hidden", timeout });
  // A test may keep the page from its data.
  if (isAway || held !== undefined) await load(2_000).catch(() => {});
  else await load(10_000);
}

async function fresh({ theme = "light", width = 1280, height = 800 } = {}) {
  await context?.close();
  context = await browser.newContext({ colorScheme: theme, viewport: { width, height }, locale: "en-US" });
  // No test reaches another machine.
  await context.route(
    // A page that saves a file has it in its own memory.
    (url) => url.protocol !== "blob:" && url.hostname !== "127.0.0.1" && url.hostname !== "localhost",
    (route) => {
      // The pages of the provider do, and ours must not.
      if (isOurs()) problems.push(`asks ${route.request().url()}`);
      return route.abort();
    },
  );
  isAway = false;
  await context.route(
    () => isAway,
    (route) => route.abort("connectionrefused"),
  );
  held = undefined;
  await context.route(
    () => held !== undefined,
    (route) => (route.request().method() === "GET" ? route.fallback() : void held.push(route)),
  );
  page = await context.newPage();
  problems = [];
  // Violations of the content security policy are errors of the console too.
  page.on("console", (message) => {
    // The pages of the provider ask other machines for fonts.
    if (message.type() === "error" && isOurs()) problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error)));
}

const commands = {
  fresh,
  open: async ({ url }) => void (await page.goto(url)),
  click: async ({ what }) => {
    await comes(what);
    await page.click(what);
  },
  // Clicks, and takes the file that the browser saves. No page is opened for it.
  save: async ({ what }) => {
    await comes(what);
    const before = page.url();
    const [saved] = await Promise.all([page.waitForEvent("download"), page.click(what)]);
    const bytes = await readFile(await saved.path());
    await saved.delete();
    if (page.url() !== before || context.pages().length !== 1) throw new Error(`${page.url()} was opened`);
    return {
      name: saved.suggestedFilename(),
      bytes: bytes.length,
      sha256: createHash("sha256").update(bytes).digest("hex"),
    };
  },
  press: async ({ key }) => void (await page.keyboard.press(key)),
  type: async ({ text }) => void (await page.keyboard.type(text)),
  // Presses a key until the element of this role and name has the focus. A name that ends with … is the beginning of one.
  reach: async ({ role, name, key, most }) => {
    const begin = name.endsWith("…") ? name.slice(0, -1).replace(/[.*+?^${}()|[\]\\]/g, "\\$&") : undefined;
    const named = begin === undefined ? { name, exact: true } : { name: new RegExp(`^${begin}`) };
    // A button that is of no use yet has the focus too, and a person waits until it is.
    const found = page.getByRole(role, role === "button" && most > 0 ? { ...named, disabled: false } : named);
    await found.first().waitFor();
    for (let presses = 0; presses <= most; presses++) {
      if (await found.evaluateAll(haveFocus)) return { presses, isShown: await page.evaluate(isFocusShown) };
      await page.keyboard.press(key);
    }
    const at = await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200));
    throw new Error(`${most} presses of ${key} do not reach the ${role} "${name}"; the focus is at ${at}`);
  },
  // Until no dialog and no menu is open. Soon after that the focus is on something that is seen, and it stays there.
  kept: async () => {
    const isOpen = "[role=dialog], [role=alertdialog], [role=menu]";
    await page.waitForFunction((isOpen) => document.querySelector(isOpen) === null, isOpen, { timeout: 10_000 });
    await page.waitForFunction(isFocusKept, undefined, { timeout: 2_000 });
    await page.waitForTimeout(200);
    if (await page.evaluate(isFocusKept)) return;
    throw new Error(`the focus is lost at ${await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200))}`);
  },
  // As if the server did not run, or ran again.
  away: async ({ is }) => void (isAway = is),
  // As if somebody pressed the browser's button, on a page that may ask first.
  back: async () => void (await page.evaluate(() => window.history.back())),
  // While it is so, no request that may change something reaches the server.
  hold: async ({ is }) => {
    const waiting = held ?? [];
    held = is ? waiting : undefined;
    // Who left the page has given up the request.
    if (!is) await Promise.all(waiting.map((route) => route.continue().catch(() => {})));
  },
  // Signs somebody in with another tab, which has the same cookies.
  other: async ({ url, login, password }) => {
    const tab = await context.newPage();
    await tab.goto(url);
    await tab.fill("input[name=login]", login);
    await tab.fill("input[name=password]", password);
    await tab.keyboard.press("Enter");
    await tab.waitForURL((at) => !at.pathname.startsWith("/signin"));
    await tab.close();
  },
  // Pages that are opened from now on have a clock that `still` stops, and that only `pass` moves after that.
  clock: async () => void (await page.clock.install()),
  still: async () => void (await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1000)),
  // Lets seconds pass, and counts the requests for addresses with this text. After each second, the answers are waited for:
  // they set the next timers.
  pass: async ({ seconds, what }) => {
    let asked = 0;
    const open = new Set();
    const begins = (request) => {
      open.add(request);
      if (request.url().includes(what)) asked += 1;
    };
    const ends = (request) => void open.delete(request);
    page.on("request", begins);
    page.on("requestfinished", ends);
    page.on("requestfailed", ends);
    for (let second = 0; second < seconds; second++) {
      await page.clock.runFor(1000);
      do await sleep(20);
      while (open.size > 0);
      await sleep(20);
    }
    page.off("request", begins);
    page.off("requestfinished", ends);
    page.off("requestfailed", ends);
    return asked;
  },
  // As if the person looked at another tab, or back at this one.
  hide: async ({ is }) =>
    page.evaluate((is) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => is });
      Object.defineProperty(document, "visibilityState", { configurable: true, get: () => (is ? "hidden" : "visible") });
      document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
    }, is),
  addresses: async () => page.evaluate(addressesThatDo),
  // How many elements there are that no page of ours has: a text made them, if it was taken for markup.
  alien: async () => page.evaluate(() => document.querySelectorAll("img, iframe, object, embed, body script").length),
  fill: async ({ what, text }) => void (await page.fill(what, text)),
  select: async ({ what, value }) => void (await page.selectOption(what, value)),
  // Until nothing was asked for half a second.
  idle: async () => void (await page.waitForLoadState("networkidle")),
  // A page that draws the element again, as another one, loses the mark.
  mark: async ({ what }) => page.locator(what).evaluate((one) => one.setAttribute("data-marked", "")),
  see: async ({ what }) => void (await page.waitForSelector(what)),
  url: async () => page.url(),
  text: async () => page.innerText("body"),
  value: async ({ what }) => page.innerText(what),
  // Those of all elements that are there.
  texts: async ({ what }) => page.locator(what).allInnerTexts(),
  input: async ({ what }) => page.inputValue(what),
  // As if the session had ended: its cookie is gone, and the page stays.
  forget: async () => {
    cookies = await context.cookies();
    await context.clearCookies();
  },
  // As if the person had signed in with another tab.
  recall: async () => void (await context.addCookies(cookies)),
  wait: async ({ url }) => void (await page.waitForURL((at) => at.href.startsWith(url))),
  focused: async () => page.evaluate(() => document.activeElement?.textContent || document.activeElement?.name || ""),
  problems: async () => problems.splice(0),
  axe: async () => {
    const found = await new AxeBuilder({ page }).analyze();
    return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ")}`);
  },
  theme: async ({ theme }) => void (await page.emulateMedia({ colorScheme: theme })),
  size: async ({ width, height }) => void (await page.setViewportSize({ width, height })),
  overflows: async () =>
    page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth),
  // What is seen, as gray tones of a grid, row by row in hexadecimal digits.
  look: async ({ columns, rows }) => {
    const picture = (await page.screenshot({ animations: "disabled" })).toString("base64");
    eye ??= await (await browser.newContext()).newPage();
    return eye.evaluate(
      async ({ picture, columns, rows }) => {
        const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${picture}`)).blob());
        const canvas = new OffscreenCanvas(columns, rows).getContext("2d");
        canvas.imageSmoothingQuality = "high";
        canvas.drawImage(image, 0, 0, columns, rows);
        const { data } = canvas.getImageData(0, 0, columns, rows);
        let tones = "";
        for (let at = 0; at < data.length; at += 4) {
          const tone = Math.round(0.3 * data[at] + 0.59 * data[at + 1] + 0.11 * data[at + 2]);
          tones += tone.toString(16).padStart(2, "0");
        }
        return tones;
      },
      { picture, columns, rows },
    );
  },
  picture: async ({ path }) => void (await page.screenshot({ path, fullPage: true })),
};

await fresh();
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { command, ...given } = JSON.parse(line);
  let answer;
  try {
    answer = { done: (await commands[command](given)) ?? null };
  } catch (error) {
    answer = { failed: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
