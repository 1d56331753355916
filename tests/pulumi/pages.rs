//! The pages for users: their shell blocks run as they are written, in order, with the real clients and the program.
//!
//! A page has a server, a home and one shell of its own. Before a block runs, what a reader would replace in it is replaced:
//!
//! | shown | run |
//! |---|---|
//! | `swt_…` | the token that the server printed at its first start |
//! | `localhost:8080`, `127.0.0.1:8080` | the address of the page's server |
//! | `/srv/…`, `/mnt/…` | a folder of the page's home |
//! | any other `…` | a password |
//!
//! `cargo run --release --` runs the program that is built already, and `serve` runs in the background until the page ends.
//! Questions are answered by the variables that clients have for that. An `hcl` block is written to `backend.tf`.
//!
//! A block that does not run says why behind its `sh`; [`REASONS`] has the reasons. Its lines are parsed where the program is.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use statewright_tests::cli::PulumiCli;
use statewright_tests::tools;

use crate::support::SECRET_PROGRAM;

/// Why a block does not run.
const REASONS: [(&str, &str); 5] = [
    ("aws", "it needs an AWS account"),
    ("docker", "it needs Docker"),
    ("ci", "it needs a job of a CI, or the CI's issuer on the Internet"),
    ("person", "it needs a person who signs in with a browser"),
    ("build", "it compiles this tree or installs programs, which a test of this tree cannot do to itself"),
];

/// What blocks that are not for a shell are.
const OTHERS: [&str; 4] = ["hcl", "json", "text", "yaml"];

/// How a line of a shell begins. Written as another kind of block, it would be neither run nor parsed.
const COMMANDS: [&str; 7] = ["aws ", "cargo ", "curl ", "export ", "pulumi ", "statewright ", "tofu "];

/// A page whose blocks run.
struct Page {
    path: &'static str,
    /// What has to be there first: before the whole page, with `""`, or before the block that begins so.
    before: &'static [(&'static str, &'static str)],
}

const README: Page = Page { path: "README.md", before: &[] };

const ACCESS: Page = Page {
    path: "shared/docs/access.md",
    before: &[
        (
            "",
            "serve --organization acme
            statewright user create bob --org acme
            statewright user create carol",
        ),
        ("statewright protect", "log_in; pulumi stack init prod"),
    ],
};

const AUDIT: Page =
    Page { path: "shared/docs/audit.md", before: &[("", "serve --organization main; log_in")] };

const CONSOLE: Page = Page { path: "shared/docs/console.md", before: &[("", "serve")] };

const ENVIRONMENTS: Page = Page {
    path: "shared/docs/environments.md",
    before: &[("", "serve --organization acme; log_in; pulumi stack init dev")],
};

const HTTP_API: Page = Page { path: "shared/docs/http-api.md", before: &[("", "serve; log_in")] };

const LABELS: Page = Page {
    path: "shared/docs/labels-and-schemas.md",
    before: &[(
        "",
        r#"serve; log_in
        statewright state create network --init
        statewright tf -- init
        statewright tf -- apply
        echo '{"type": "string"}' >schema.json"#,
    )],
};

const OPERATING: Page = Page {
    path: "shared/docs/operating.md",
    before: &[
        ("", "serve"),
        (
            "export PULUMI_JOURNALING_BATCH_PERIOD",
            "log_in; pulumi stack init dev; pulumi config set --secret password hunter2",
        ),
    ],
};

const SIGN_IN: Page = Page {
    path: "shared/docs/sign-in.md",
    // Without a terminal, the token is that of the environment.
    before: &[
        ("", "serve"),
        (
            "statewright user invite carol",
            "export STATEWRIGHT_TOKEN=$token STATEWRIGHT_URL=http://$STATEWRIGHT_LISTEN",
        ),
        ("statewright login", "unset STATEWRIGHT_URL"),
    ],
};

const TERRAFORM: Page = Page {
    path: "shared/docs/terraform.md",
    before: &[
        ("", "serve; export STATEWRIGHT_TOKEN=$token"),
        ("statewright tf -- apply", r#"echo 'resource "terraform_data" "next" {}' >>main.tf"#),
        ("terraform {", "mkdir by-hand; cp main.tf by-hand; cd by-hand"),
        (
            "openssl ",
            "kill $server; wait $server || :
            serve --tls-cert $HOME/server.pem --tls-key $HOME/server.key
            statewright user create bob --org main
            unset TF_HTTP_USERNAME TF_HTTP_PASSWORD
            export SSL_CERT_FILE=$HOME/server.pem
            sed -i s/http:/https:/ backend.tf; rm -r .terraform",
        ),
        (
            "statewright user password",
            "unset TF_HTTP_CLIENT_CERTIFICATE_PEM TF_HTTP_CLIENT_PRIVATE_KEY_PEM; rm -r .terraform",
        ),
    ],
};

/// All pages whose blocks run.
const PAGES: [&Page; 10] =
    [&README, &ACCESS, &AUDIT, &CONSOLE, &ENVIRONMENTS, &HTTP_API, &LABELS, &OPERATING, &SIGN_IN, &TERRAFORM];

/// What a page's shell knows before its first block.
const SHELL: &str = r#"set -eu
url=http://$STATEWRIGHT_LISTEN password=correct-horse-battery
mkdir -p "$HOME/srv" "$HOME/mnt/backup"
trap 'kill "${server-}" 2>/dev/null || :' EXIT

statewright() {
    case "$1 ${2-}" in
        serve*) serve_as "$@" ;;
        'user password') echo "$password" | command statewright "$@" ;;
        *) command statewright "$@" ;;
    esac
}

cargo() {
    [ "$1 $2 $3" = 'run --release --' ]
    shift 3
    statewright "$@"
}

# Starts a server and waits until it listens; a first start also prints a token.
serve_as() {
    awaited='Statewright listens on '
    [ -e "$STATEWRIGHT_DATA/ledger.sqlite" ] || awaited='export STATEWRIGHT_TOKEN='
    rm -f "$HOME/said"
    mkfifo "$HOME/said"
    command statewright "$@" >"$HOME/said" &
    server=$!
    exec 3<"$HOME/said"
    while read -r line <&3; do
        case "$line" in
            'export STATEWRIGHT_TOKEN='*) token=${line#*=} ;;
        esac
        case "$line" in
            "$awaited"*) return ;;
        esac
    done
    exit 1
}

serve() { statewright serve "$@"; }

# For both kinds of client.
log_in() {
    export PULUMI_BACKEND_URL="$url" PULUMI_ACCESS_TOKEN="$token"
    export STATEWRIGHT_URL="$url" STATEWRIGHT_TOKEN="$token"
}
"#;

const CONFIGURATION: &str = "resource \"terraform_data\" \"web\" {\n  input = \"https://web.example.com\"\n}\n\
                             output \"url\" {\n  value = terraform_data.web.output\n}\n";

/// A block of a page.
struct Block {
    /// Of its first line, from 1.
    line: usize,
    /// What is written behind the fence.
    info: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let indent = line.len() - line.trim_start().len();
        let inside = lines.by_ref().take_while(|(_, line)| line.trim() != "```");
        let text =
            inside.fold(String::new(), |text, (_, line)| text + line.get(indent..).unwrap_or("") + "\n");
        blocks.push(Block { line: number + 2, info: info.to_owned(), text });
    }
    blocks
}

/// The page as one script.
fn script(page: &Page, address: &str) -> String {
    let text = fs::read_to_string(root().join(page.path)).unwrap();
    let mut script = SHELL.to_owned();
    let mut left: Vec<&(&str, &str)> = page.before.iter().collect();
    let mut prepare = |script: &mut String, is_now: &dyn Fn(&str) -> bool| {
        for (_, first) in left.extract_if(.., |(begin, _)| is_now(begin)) {
            writeln!(script, "{first}").unwrap();
        }
    };
    prepare(&mut script, &str::is_empty);
    for Block { line, info, text } in blocks(&text) {
        if info != "sh" && info != "hcl" {
            continue;
        }
        prepare(&mut script, &|begin| !begin.is_empty() && text.starts_with(begin));
        let text = text
            .replace("swt_…", "$token")
            .replace("localhost:8080", address)
            .replace("127.0.0.1:8080", address)
            .replace("/srv/", "$HOME/srv/")
            .replace("/mnt/", "$HOME/mnt/")
            .replace('…', "$password");
        writeln!(script, "echo '--- {}:{line}'", page.path).unwrap();
        match info.as_str() {
            "hcl" => write!(script, "cat >backend.tf <<'END'\n{text}END\n").unwrap(),
            _ => script.push_str(&text),
        }
    }
    assert!(left.is_empty(), "{}: no block begins so: {left:?}", page.path);
    script
}

/// A port that is free now.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

async fn run(page: &Page) {
    let address = free_address();
    let cli = PulumiCli::new().patience(Duration::from_secs(600));
    let home = cli.home_dir();
    let bin = home.join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(tools::statewright(), bin.join("statewright")).unwrap();
    std::os::unix::fs::symlink(tools::tofu(), bin.join("tofu")).unwrap();
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(home.join("server.pem"), certified.cert.pem()).unwrap();
    fs::write(home.join("server.key"), certified.signing_key.serialize_pem()).unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", bin.display(), tools::pulumi_bin_dir().display());
    cli.yaml_project("web", SECRET_PROGRAM);
    cli.write("main.tf", CONFIGURATION);
    let script_path = home.join("page.sh");
    fs::write(&script_path, script(page, &address)).unwrap();
    let cli = cli
        .clone()
        .env("PATH", path)
        .env("STATEWRIGHT_LISTEN", &address)
        .env("STATEWRIGHT_DATA", home.join("data"))
        .env("STATEWRIGHT_LOG", "warn")
        .env("PULUMI_SKIP_CONFIRMATIONS", "true")
        .env("TF_CLI_ARGS_apply", "-auto-approve")
        .env("TF_INPUT", "0")
        .env("CHECKPOINT_DISABLE", "1");
    cli.run_program(Path::new("/bin/sh"), &[script_path.as_os_str()]).await.assert_success();
}

#[tokio::test]
async fn the_blocks_of_the_readme_run() {
    run(&README).await;
}

#[tokio::test]
async fn the_blocks_about_the_audit_trail_run() {
    run(&AUDIT).await;
}

#[tokio::test]
async fn the_blocks_about_access_run() {
    run(&ACCESS).await;
}

#[tokio::test]
async fn the_blocks_about_the_console_run() {
    run(&CONSOLE).await;
}

#[tokio::test]
async fn the_blocks_about_environments_run() {
    run(&ENVIRONMENTS).await;
}

#[tokio::test]
async fn the_blocks_about_the_http_api_run() {
    run(&HTTP_API).await;
}

#[tokio::test]
async fn the_blocks_about_labels_and_schemas_run() {
    run(&LABELS).await;
}

#[tokio::test]
async fn the_blocks_about_operating_run() {
    run(&OPERATING).await;
}

#[tokio::test]
async fn the_blocks_about_signing_in_run() {
    run(&SIGN_IN).await;
}

#[tokio::test]
async fn the_blocks_about_terraform_run() {
    run(&TERRAFORM).await;
}

/// All pages of the tree.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && !name.starts_with("target") && name != "node_modules" {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

#[test]
fn every_shell_block_runs_or_says_why_not() {
    let root = root().canonicalize().unwrap();
    let mut found = Vec::new();
    pages(&root, &mut found);
    let (mut run, mut skipped) = (0, 0);
    for path in found {
        let page = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let runs = PAGES.iter().any(|it| it.path == page);
        for Block { line, info, text } in blocks(&fs::read_to_string(&path).unwrap()) {
            match info.strip_prefix("sh") {
                Some("") => {
                    assert!(runs, "{page}:{line}: no test runs this block, and it does not say why");
                    run += 1;
                }
                Some(reason) => {
                    let is_known = REASONS.iter().any(|(known, _)| *known == reason.trim());
                    assert!(is_known, "{page}:{line}: {info:?} is no reason for a block not to run");
                    skipped += 1;
                }
                None => {
                    assert!(OTHERS.contains(&info.as_str()), "{page}:{line}: what is a block of {info:?}?");
                    let is_shell = |line: &str| COMMANDS.iter().any(|start| line.starts_with(start));
                    assert!(!text.lines().any(is_shell), "{page}:{line}: a block for a shell is `sh`");
                }
            }
        }
    }
    assert!(run >= 15 && skipped >= 10, "{run} blocks run and {skipped} do not");
}
