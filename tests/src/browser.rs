//! A real browser, and a real OpenID Connect provider. See `tests/tools/browser`.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::tools;

/// A program that reads lines and writes lines. It ends when it is dropped.
struct Program {
    process: Child,
    sends: Option<ChildStdin>,
    says: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(script: &str, environment: &[(&str, &str)]) -> Self {
        let tools = tools::browser();
        let mut process = Command::new(&tools.node)
            .arg(tools.folder.join(script))
            .env("CHROMIUM", &tools.chromium)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("node starts");
        let says = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Self { sends: process.stdin.take(), process, says }
    }

    async fn line(&mut self) -> String {
        self.says.next_line().await.expect("it is text").expect("the program runs")
    }
}

/// Chromium with one page.
pub struct Chromium(Program);

impl Chromium {
    /// Starts it with a page in the light theme.
    pub fn start() -> Self {
        Self(Program::start("drive.mjs", &[]))
    }

    /// Gives a command, and returns its answer.
    ///
    /// # Panics
    /// If the browser cannot do it.
    #[track_caller]
    pub fn run(&mut self, command: &Value) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let line = format!("{command}\n");
            let sends = self.0.sends.as_mut().expect("it is piped");
            sends.write_all(line.as_bytes()).await.expect("the browser listens");
            let answer: Value = serde_json::from_str(&self.0.line().await).expect("it answers JSON");
            assert_eq!(answer["failed"], Value::Null, "{command} at {caller}");
            answer["done"].clone()
        }
    }

    /// A new profile, without cookies.
    pub async fn fresh(&mut self) {
        self.run(&json!({ "command": "fresh" })).await;
    }

    pub async fn open(&mut self, url: &str) {
        self.run(&json!({ "command": "open", "url": url })).await;
    }

    /// Clicks the element with this selector of Playwright.
    pub async fn click(&mut self, what: &str) {
        self.run(&json!({ "command": "click", "what": what })).await;
    }

    /// Clicks, and expects that the browser saves exactly these bytes as a file of this name, and opens no page.
    ///
    /// # Panics
    /// If it does not.
    pub async fn saves(&mut self, what: &str, name: &str, bytes: &[u8]) {
        let saved = self.run(&json!({ "command": "save", "what": what })).await;
        let sha256 = hex::encode(Sha256::digest(bytes));
        assert_eq!(saved, json!({ "name": name, "bytes": bytes.len(), "sha256": sha256 }));
    }

    pub async fn press(&mut self, key: &str) {
        self.run(&json!({ "command": "press", "key": key })).await;
    }

    /// Types this where the focus is.
    pub async fn types(&mut self, text: &str) {
        self.run(&json!({ "command": "type", "text": text })).await;
    }

    /// Presses Tab until the element with this role and name has the focus. A name that ends with `…` is the
    /// beginning of one.
    ///
    /// # Panics
    /// If it is not reached, or does not show that it has the focus.
    pub async fn reach(&mut self, role: &str, name: &str) {
        self.reach_by("Tab", role, name).await;
    }

    /// The same with another key.
    ///
    /// # Panics
    /// As [`Chromium::reach`].
    pub async fn reach_by(&mut self, key: &str, role: &str, name: &str) {
        let command =
            json!({ "command": "reach", "key": key, "role": role, "name": name, "most": PRESSES_MAX });
        let reached = self.run(&command).await;
        assert_eq!(reached["isShown"], true, "the {role} {name:?} does not show that it has the focus");
    }

    /// Reaches an element, and presses Enter.
    pub async fn enter(&mut self, role: &str, name: &str) {
        self.reach(role, name).await;
        self.press("Enter").await;
    }

    /// Presses the button that opens a dialog.
    pub async fn asks(&mut self, button: &str) {
        self.enter("button", button).await;
        self.sees("[role=alertdialog]").await;
    }

    /// Opens the menu of a row, and the dialog of what it offers by this name.
    pub async fn asks_by_menu(&mut self, row: &str, item: &str) {
        self.enter("button", row).await;
        self.reach_by("ArrowDown", "menuitem", item).await;
        self.press("Enter").await;
        self.sees("[role=alertdialog]").await;
    }

    /// Goes to the place of this name by these letters, as the console offers places.
    pub async fn goes_to(&mut self, letters: &str, place: &str, url: &str) {
        self.press("Control+k").await;
        self.sees("[placeholder='Stack, state or page']:focus").await;
        self.types(letters).await;
        self.reach_by("ArrowDown", "menuitem", &format!("{place}…")).await;
        self.press("Enter").await;
        self.arrives(url).await;
        self.keeps_focus().await;
    }

    /// Signs in on the page of sign-ins by keyboard.
    ///
    /// # Panics
    /// If the field for the password does not follow the one for the user.
    pub async fn signs_in_by_keys(&mut self, login: &str, password: &str) {
        self.reach("textbox", "User").await;
        self.types(login).await;
        self.press("Tab").await;
        assert_eq!(self.focused().await, "password");
        self.types(password).await;
        self.press("Enter").await;
    }

    /// Expects that the element with this role and name has the focus, and shows it.
    ///
    /// # Panics
    /// If it does not.
    pub async fn has_focus(&mut self, role: &str, name: &str) {
        let command = json!({ "command": "reach", "key": "Tab", "role": role, "name": name, "most": 0 });
        let reached = self.run(&command).await;
        assert_eq!(reached["isShown"], true, "the {role} {name:?} does not show that it has the focus");
    }

    /// Waits until no dialog and no menu is open. Soon after that the focus is on something that is seen, and it stays
    /// there.
    pub async fn keeps_focus(&mut self) {
        self.run(&json!({ "command": "kept" })).await;
    }

    /// Presses the browser's own button to the page before.
    pub async fn back(&mut self) {
        self.run(&json!({ "command": "back" })).await;
    }

    /// From now on, no request that may change something reaches the server, or all that wait do.
    pub async fn hold(&mut self, is: bool) {
        self.run(&json!({ "command": "hold", "is": is })).await;
    }

    /// Signs somebody in with another tab of the same browser, at this address of the page of sign-ins.
    pub async fn signs_in_elsewhere(&mut self, url: &str, login: &str, password: &str) {
        let command = json!({ "command": "other", "url": url, "login": login, "password": password });
        self.run(&command).await;
    }

    /// From now on, the server seems not to run, or seems to run again.
    pub async fn away(&mut self, is: bool) {
        self.run(&json!({ "command": "away", "is": is })).await;
    }

    /// Expects that the page has no element that only a text of somebody can have made, and no address that does
    /// something, such as `javascript:`.
    ///
    /// # Panics
    /// If it has one.
    pub async fn has_no_alien_element(&mut self) {
        let found = self.run(&json!({ "command": "alien" })).await;
        let url = self.url().await;
        assert_eq!(found, json!(0), "a text was taken for markup at {url}");
        let addresses = self.run(&json!({ "command": "addresses" })).await;
        assert_eq!(addresses, json!([]), "an address is not of a page at {url}");
    }

    /// Expects no error of the console since the last look, such as a violation of the content security policy.
    ///
    /// # Panics
    /// If it has one.
    pub async fn has_no_problem(&mut self) {
        self.has_no_problem_but(&[]).await;
    }

    /// The same, except for those that contain one of these texts: those that a test forces.
    ///
    /// # Panics
    /// If it has another one.
    pub async fn has_no_problem_but(&mut self, forced: &[&str]) {
        let found = self.run(&json!({ "command": "problems" })).await;
        let mut problems = found.as_array().cloned().unwrap_or_default();
        problems.retain(|problem| {
            let text = problem.as_str().unwrap_or_default();
            !forced.iter().any(|one| text.contains(one))
        });
        let url = self.url().await;
        assert!(problems.is_empty(), "errors of the console at {url}: {problems:?}");
    }

    /// The text in a field.
    pub async fn input(&mut self, what: &str) -> String {
        let answer = self.run(&json!({ "command": "input", "what": what })).await;
        answer.as_str().unwrap_or_default().to_owned()
    }

    pub async fn fill(&mut self, what: &str, text: &str) {
        self.run(&json!({ "command": "fill", "what": what, "text": text })).await;
    }

    /// Waits until the address begins so.
    pub async fn arrives(&mut self, url: &str) {
        self.run(&json!({ "command": "wait", "url": url })).await;
    }

    /// Waits until the page shows the element with this selector of Playwright.
    pub async fn sees(&mut self, what: &str) {
        self.run(&json!({ "command": "see", "what": what })).await;
    }

    /// Marks an element with `data-marked`, which it has as long as it is the same one.
    pub async fn marks(&mut self, what: &str) {
        self.run(&json!({ "command": "mark", "what": what })).await;
    }

    /// Waits until the page has asked for nothing for half a second.
    pub async fn rests(&mut self) {
        self.run(&json!({ "command": "idle" })).await;
    }

    async fn text_of(&mut self, command: &str) -> String {
        let answer = self.run(&json!({ "command": command })).await;
        answer.as_str().unwrap_or_default().to_owned()
    }

    pub async fn url(&mut self) -> String {
        self.text_of("url").await
    }

    /// The visible text of the page.
    pub async fn text(&mut self) -> String {
        self.text_of("text").await
    }

    /// The text of the element that has the focus, or the name of its field.
    pub async fn focused(&mut self) -> String {
        self.text_of("focused").await
    }

    /// The text of one element.
    pub async fn value(&mut self, what: &str) -> String {
        let answer = self.run(&json!({ "command": "value", "what": what })).await;
        answer.as_str().unwrap_or_default().to_owned()
    }

    /// The texts of all elements with this selector that are there now.
    pub async fn texts(&mut self, what: &str) -> Vec<String> {
        let answer = self.run(&json!({ "command": "texts", "what": what })).await;
        let texts = answer.as_array().into_iter().flatten();
        texts.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Pages that are opened from now on have a clock of their own, which runs until [`Chromium::stops_the_clock`].
    pub async fn has_a_clock(&mut self) {
        self.run(&json!({ "command": "clock" })).await;
    }

    /// From now on, only [`Chromium::passes`] moves the clock of the page.
    pub async fn stops_the_clock(&mut self) {
        self.run(&json!({ "command": "still" })).await;
    }

    /// Lets seconds pass on the page's clock, and returns how often it asked for an address with this text.
    pub async fn passes(&mut self, seconds: u64, what: &str) -> u64 {
        let answer = self.run(&json!({ "command": "pass", "seconds": seconds, "what": what })).await;
        answer.as_u64().unwrap_or_default()
    }

    /// From now on, the tab seems to be hidden, or to be looked at again.
    pub async fn hides(&mut self, is: bool) {
        self.run(&json!({ "command": "hide", "is": is })).await;
    }

    /// Expects a page without faults: no error of the console since the last check, no violation of the rules for
    /// accessible pages in either theme, and nothing wider than a phone. With `STATEWRIGHT_PICTURES`, takes
    /// pictures of it into that folder.
    ///
    /// # Panics
    /// If it has one.
    pub async fn check_page(&mut self, name: &str) {
        self.has_no_problem().await;
        self.check(name, &[("light", 1280), ("light", 390), ("dark", 1280), ("dark", 390)]).await;
    }

    /// The same in each theme at one width, which takes half as long: for dialogs, which are over a page, and for
    /// pages that have the parts of others.
    ///
    /// # Panics
    /// If it has a fault.
    pub async fn check_briefly(&mut self, name: &str) {
        self.check_failure(name, &[]).await;
    }

    /// As [`Chromium::check_briefly`], of what a page shows of a failure. Errors of the console that contain one of
    /// these texts are those that the test forces.
    ///
    /// # Panics
    /// If it has another fault.
    pub async fn check_failure(&mut self, name: &str, forced: &[&str]) {
        self.has_no_problem_but(forced).await;
        self.check(name, &[("light", 1280), ("dark", 390)]).await;
    }

    /// Checks the page in these themes, at these widths.
    async fn check(&mut self, name: &str, settings: &[(&str, u32)]) {
        let folder = std::env::var_os("STATEWRIGHT_PICTURES");
        let mut looks = Looks::new();
        for (theme, width) in settings {
            self.run(&json!({ "command": "theme", "theme": theme })).await;
            self.run(&json!({ "command": "size", "width": width, "height": 800 })).await;
            let found = self.run(&json!({ "command": "axe" })).await;
            assert_eq!(found, json!([]), "{name} in the {theme} theme at {width} px");
            let overflows = self.run(&json!({ "command": "overflows" })).await;
            assert_eq!(overflows, json!(false), "{name} is wider than {width} px");
            let (columns, rows) = GRID;
            let look = self.run(&json!({ "command": "look", "columns": columns, "rows": rows })).await;
            looks.insert(format!("{theme}-{width}"), look.as_str().unwrap_or_default().to_owned());
            if let Some(folder) = &folder {
                let path = Path::new(folder).join(format!("{name}-{theme}-{width}.png"));
                self.run(&json!({ "command": "picture", "path": path })).await;
            }
        }
        self.run(&json!({ "command": "theme", "theme": "light" })).await;
        self.run(&json!({ "command": "size", "width": 1280, "height": 800 })).await;
        compare_looks(name, &looks);
    }
}

/// Presses of a key after which an element is not reached.
const PRESSES_MAX: usize = 150;

/// What a page looks like in each theme at each width: gray tones of a grid, as hexadecimal digits.
type Looks = BTreeMap<String, String>;

/// The columns and rows of a look. Each cell averages many letters, so texts may differ, and parts of a page may not.
const GRID: (u32, u32) = (24, 16);

/// The difference of a look from the stored one, at most. Between the looks of one page that were stored at different
/// times, the mean was up to 2.9, and the largest cell up to 21: times, durations and what runs move texts. The pages of
/// two lists, which are other texts in the same frame, differ by 20 to 43 in a cell, so a larger limit for a cell would
/// find nothing. `STATEWRIGHT_LOOKS` measures both again.
const LOOK_TOLERANCE: Difference = Difference { mean: 6.0, most: 35 };

/// Pages of an update that runs: they have a row more with each step, so only the mean of their cells is compared.
const MOVING: [&str; 5] = [
    "console-home-busy",
    "console-live",
    "console-live-timeline",
    "console-locks-running",
    "console-running",
];

/// Compares a page with how it looked when somebody looked at it. `UPDATE_PAGES=1` stores what it looks like now: look
/// at the pictures first, which `STATEWRIGHT_PICTURES=FOLDER` makes. `STATEWRIGHT_LOOKS=FILE` refuses nothing, and adds a
/// line for each page, theme and width to this file, with the difference.
fn compare_looks(name: &str, looks: &Looks) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/looks").join(format!("{name}.json"));
    if std::env::var_os("UPDATE_PAGES").is_some() {
        let folder = path.parent().expect("it has one");
        std::fs::create_dir_all(folder).expect("the folder is there");
        let text = serde_json::to_string_pretty(looks).expect("it is JSON") + "\n";
        std::fs::write(&path, text).expect("the look is stored");
        return;
    }
    let stored = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Looks>(&text).ok());
    let stored =
        stored.unwrap_or_else(|| panic!("{} is missing: store it with UPDATE_PAGES=1", path.display()));
    let measured = std::env::var_os("STATEWRIGHT_LOOKS");
    for (setting, look) in looks {
        let difference = stored.get(setting).and_then(|stored| look_difference(stored, look));
        let Some(difference) = difference else {
            panic!("{name} ({setting}) has no stored look of this size: store it with UPDATE_PAGES=1")
        };
        if let Some(file) = &measured {
            let Difference { mean, most } = difference;
            let line = format!("{mean:.2}\t{most}\t{name}\t{setting}\n");
            let mut file =
                OpenOptions::new().create(true).append(true).open(file).expect("it can be written");
            file.write_all(line.as_bytes()).expect("it can be written");
            continue;
        }
        let Difference { mean, most } = difference;
        assert!(
            mean <= LOOK_TOLERANCE.mean && (most <= LOOK_TOLERANCE.most || MOVING.contains(&name)),
            "{name} ({setting}) looks different by {mean:.1} of 255, and by {most} in one cell: make pictures with \
             STATEWRIGHT_PICTURES=FOLDER, look at them, and accept them with UPDATE_PAGES=1"
        );
    }
}

/// How far two looks differ, in tones of 255.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Difference {
    /// The mean of all cells.
    mean: f64,
    /// The cell that differs most.
    most: u8,
}

/// The difference of two looks; `None` if they have no cells, or not as many.
fn look_difference(one: &str, other: &str) -> Option<Difference> {
    let tones = |look: &str| hex::decode(look).unwrap_or_default();
    let (one, other) = (tones(one), tones(other));
    let differences = || one.iter().zip(&other).map(|(one, other)| one.abs_diff(*other));
    let most = differences().max().filter(|_| one.len() == other.len())?;
    let sum: f64 = differences().map(f64::from).sum();
    Some(Difference { mean: sum / one.len() as f64, most })
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // The browser itself ends with its driver's input, or with the driver.
        self.0.sends = None;
        let _ = self.0.process.start_kill();
    }
}

/// The client ID of this server at the provider.
pub const CLIENT_ID: &str = "statewright";

/// The client secret of this server at the provider.
pub const CLIENT_SECRET: &str = "a secret of the client + its / signs";

/// A real provider. Its page takes any name and password; `NAME+GROUP` signs in NAME with that group.
pub struct Provider {
    /// Its issuer, on a loopback port.
    pub issuer: String,
    program: Program,
}

/// Pages and redirects of one sign-in at a provider, at most.
const STEPS_MAX: usize = 12;

impl Provider {
    /// Starts a provider that sends people back to this address.
    pub async fn start(redirect_uri: &str) -> Self {
        let redirects = json!([redirect_uri]).to_string();
        let mut program = Program::start("provider.mjs", &[("REDIRECT_URIS", &redirects)]);
        Self { issuer: program.line().await, program }
    }

    /// What a browser without a screen does at its pages: begins where it was led to, signs in and agrees. Returns the
    /// address to which it is sent back.
    ///
    /// # Panics
    /// If it is not sent back.
    pub async fn sign_in(&self, address: &str, login: &str) -> String {
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        let http = http.build().expect("a plain client can be made");
        let (mut cookies, mut next) = (BTreeMap::<String, String>::new(), address.to_owned());
        let mut form: Option<Vec<(&str, &str)>> = None;
        for _ in 0..STEPS_MAX {
            let url = if next.starts_with('/') { format!("{}{next}", self.issuer) } else { next.clone() };
            if !url.starts_with(&format!("{}/", self.issuer)) {
                return url;
            }
            let pairs: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let request = match form.take() {
                Some(form) => http.post(&url).form(&form),
                None => http.get(&url),
            };
            let answer =
                request.header("Cookie", pairs.join("; ")).send().await.expect("the provider answers");
            for cookie in answer.headers().get_all("set-cookie") {
                let pair = cookie.to_str().ok().and_then(|text| text.split(';').next());
                let (name, value) = pair.and_then(|pair| pair.split_once('=')).expect("a cookie has a name");
                cookies.insert(name.to_owned(), value.to_owned());
            }
            let led = answer.headers().get("location").and_then(|to| to.to_str().ok()).map(str::to_owned);
            if let Some(led) = led {
                next = led;
                continue;
            }
            // A page with a form, which leads to its own address.
            let (status, text) = (answer.status(), answer.text().await.expect("the page is whole"));
            form = Some(if text.contains("value=\"login\"") {
                vec![("prompt", "login"), ("login", login), ("password", "any")]
            } else {
                assert!(text.contains("value=\"consent\""), "{status} {text}");
                vec![("prompt", "consent")]
            });
        }
        panic!("the provider leads nowhere: {next}")
    }

    /// Ends it as a crash does. Nothing listens at its address from then on.
    ///
    /// # Panics
    /// If it has ended already.
    pub async fn kill(mut self) {
        self.program.process.kill().await.expect("it runs");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_differ_by_their_mean_tone_and_by_a_cell() {
        assert_eq!(look_difference("00ff10", "00ff16"), Some(Difference { mean: 2.0, most: 6 }));
        assert_eq!(look_difference("0000", "ffff"), Some(Difference { mean: 255.0, most: 255 }));
        assert_eq!(look_difference("00", "0000"), None);
        assert_eq!(look_difference("", ""), None);
    }

    #[test]
    fn a_button_that_is_missing_makes_a_look_another() {
        let cells = (GRID.0 * GRID.1) as usize;
        let without = "f0".repeat(cells);
        // A button with a color covers half of a cell.
        let with = format!("{}98", "f0".repeat(cells - 1));
        let difference = look_difference(&without, &with).unwrap();
        assert!(difference.mean < LOOK_TOLERANCE.mean && difference.most > LOOK_TOLERANCE.most);
    }
}
