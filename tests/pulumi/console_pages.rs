//! The other pages of the console, on one store: what they show and change does not depend on the store.

use std::time::Duration;

use serde_json::{Value, json};
use statewright_shared::domain::update::LEASE;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::console::{make_stack, save_outputs, send_state, signed_in, signed_in_as, tfstate};
use statewright_tests::issuer::Issuer;

use crate::BACKEND;
use crate::console::{FILTER, PROGRAM};
use crate::support::{UP, assert_says, bench, client, export, resources, yaml};

/// Components of the large stack, and buckets below each: 50,000 in all with the feature `extended`.
const SITES: usize = if cfg!(feature = "extended") { 100 } else { 6 };

const BUCKETS: usize = 500;

/// The components below the root of a large stack, with their buckets. The last bucket has this tag.
fn sites(root: &str, tag: &str) -> Vec<Value> {
    let of_type = |types: &str, name: &str| format!("urn:pulumi:dev::large::{types}::{name}");
    let mut resources = Vec::with_capacity(SITES * (BUCKETS + 1));
    for site in 0..SITES {
        let urn = of_type("shop:index:Site", &format!("site-{site:03}"));
        for at in site * BUCKETS..(site + 1) * BUCKETS {
            let name = format!("bucket-{at:05}");
            let tag = if at + 1 == SITES * BUCKETS { tag } else { "same" };
            let inputs = json!({ "tags": { "is": tag } });
            let arn = format!("arn:aws:s3:eu-west-1:123456789012:{name}");
            resources.push(json!({
                "urn": of_type("shop:index:Site$aws:s3/bucket:Bucket", &name), "type": "aws:s3/bucket:Bucket",
                "custom": true, "id": name, "parent": urn, "inputs": inputs,
                "outputs": { "arn": arn, "bucket": name, "tags": inputs["tags"] },
            }));
        }
        let first = resources.len() - BUCKETS;
        let component = json!({ "urn": urn, "type": "shop:index:Site", "custom": false, "parent": root });
        resources.insert(first, component);
    }
    resources
}

#[tokio::test]
async fn a_resource_is_found_among_thousands() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "large", &[("count", "1")]).await.patience(Duration::from_secs(600));
    cli.run(UP).await.assert_success();
    let small = export(&cli).await;
    let few = resources(&small);
    let root = few[0]["urn"].as_str().unwrap();
    for tag in ["before", "after"] {
        let mut large = small.clone();
        large["deployment"]["resources"].as_array_mut().unwrap().extend(sites(root, tag));
        cli.write("large.json", &large.to_string());
        cli.run(["stack", "import", "--file", "large.json"]).await.assert_success();
    }

    let path = format!("/{ORG}/large/dev/resources");
    let (mut page, console) = signed_in(&app, &path).await;
    page.sees("[role=treeitem]:has-text('site-000')").await;
    let all = few.len() + SITES * (BUCKETS + 1);
    page.sees(&format!("text={},{:03} in all", all / 1000, all % 1000)).await;
    page.check_page("console-large").await;
    // The next pages come as the end is reached.
    page.click(FILTER).await;
    page.press("Tab").await;
    for at in ["#row-505", "#row-1005"] {
        page.press("End").await;
        page.sees(at).await;
    }
    let last = format!("bucket-{:05}", SITES * BUCKETS - 1);
    page.fill(FILTER, &last).await;
    page.sees(".filters:has-text('1 of ')").await;
    page.arrives(&format!("{console}{path}?q={last}")).await;
    page.click(&format!("[role=treeitem]:has-text('{last}')")).await;
    let bucket = format!("https://eu-west-1.console.aws.amazon.com/s3/buckets/{last}?region=eu-west-1");
    page.sees(&format!("a[href='{bucket}'][rel='noreferrer noopener']")).await;
    page.sees(&format!("a:text-is('site-{:03}')", SITES - 1)).await;
    page.click("button:has-text('History')").await;
    page.sees(".step:has-text('Import 3') .old:has-text('before')").await;
    page.sees(".step:has-text('Import 3') .new:has-text('after')").await;
    page.sees(".step:has-text('Import 2'):has-text('created')").await;
    page.check_page("console-large-history").await;
    // No page read the whole state.
    page.open(&format!("{console}/{ORG}/-/audit?user={USER}&event=stack.export")).await;
    page.sees("h1:has-text('Audit trail')").await;
    page.sees("main:not(:has(td:has-text('browser'))):not(:has(.waiting))").await;
}

/// A program whose README tries to run, to load and to lay itself over the page.
const WITH_README: &str = r#"outputs:
  address: https://shop.example/
  password:
    fn::secret: hunter2
  readme: |
    # The shop <script>alert(1)</script>

    It is at $${outputs.address}, with $${outputs.password}.

    #### Links

    [out](https://shop.example/a) [script](javascript:alert(1)) [data](data:text/html,1) [here](/signout)

    [![badge](https://shop.example/badge.svg)](https://shop.example/builds)

    ![logo](https://shop.example/logo.png) <img src="https://shop.example/x.png" onerror="alert(1)">

    <div style="position: fixed; inset: 0">over all</div>

    | a | b |
    |---|---|
    | 1 | 2 |
"#;

#[tokio::test]
async fn a_readme_is_shown_and_does_no_harm() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "shop", WITH_README).await;
    cli.run(UP).await.assert_success();
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/shop/dev")).await;
    page.sees(".markdown h3:has-text('The shop <script>alert(1)</script>')").await;
    page.sees(".markdown a[href='https://shop.example/a'][rel='noreferrer nofollow']").await;
    page.sees(".markdown a[href='https://shop.example/builds']:text-is('badge'):not(:has(a))").await;
    // An image is a link, and the value of another output is in the text.
    page.sees(".markdown a[href='https://shop.example/logo.png']:text-is('logo')").await;
    page.sees(".markdown p:has-text('It is at https://shop.example/, with')").await;
    page.sees(".markdown:not(:has(img, script, [style]))").await;
    for text in ["script", "data", "here"] {
        page.sees(&format!(".markdown:not(:has(a:text-is('{text}')))")).await;
    }
    assert!(!page.text().await.contains("hunter2"), "a secret is in the text");
    // Asks of other machines are among what is checked.
    page.check_page("console-readme").await;
    // A table has a cell for each column in each row, and a page with a million of them would stop.
    let table = format!("{}|\n    {}|\n{}", "|a".repeat(500), "|-".repeat(500), "    |x\n".repeat(3_000));
    cli.yaml_project("shop", &format!("outputs:\n  readme: |\n    {table}"));
    cli.run(UP).await.assert_success();
    page.open(&format!("{console}/{ORG}/shop/dev")).await;
    page.sees("section:has(h2:text-is('README')) pre.code:has-text('|x')").await;
    page.sees("main:not(:has(.markdown))").await;
}

#[tokio::test]
async fn an_admin_changes_the_organization_and_protects_a_stack() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "web", PROGRAM).await;
    cli.run(UP).await.assert_success();
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/-/members")).await;

    // A person is invited, and gets another role. The link is shown once.
    page.click("button:has-text('Invite')").await;
    page.fill("[role=alertdialog] input", "dora").await;
    page.check_page("console-invite").await;
    page.click("[role=alertdialog] button:has-text('Make the link')").await;
    page.sees(".once code").await;
    let link = page.value(".once code").await;
    assert!(link.starts_with(&format!("{console}/invite?code=dora.")), "{link}");
    page.click("button:has-text('I have it')").await;
    page.click("[aria-label='Change dora']").await;
    page.click("[role=menuitem]:has-text('Role')").await;
    page.run(&json!({ "command": "select", "what": "[role=alertdialog] select", "value": "view" })).await;
    page.click("button:has-text('Change the role')").await;
    page.sees("tr:has-text('dora'):has-text('view')").await;

    // She gets more by a team with a grant, and the page tells why.
    page.open(&format!("{console}/{ORG}/-/teams")).await;
    page.click("button:has-text('Create a team')").await;
    page.fill("[role=alertdialog] input >> nth=0", "shop").await;
    page.click("[role=alertdialog] button:has-text('Create the team')").await;
    page.click(".step-head:has-text('shop')").await;
    page.click("button:has-text('Add a member')").await;
    page.fill("[role=alertdialog] input", "dora").await;
    page.click("[role=alertdialog] button:has-text('Add')").await;
    page.sees(".step-body li:has-text('dora')").await;
    page.check_page("console-team").await;
    page.open(&format!("{console}/{ORG}/-/grants")).await;
    page.click("button:has-text('Give a role')").await;
    page.run(&json!({ "command": "select", "what": "[role=alertdialog] select >> nth=0", "value": "team" }))
        .await;
    page.fill("[role=alertdialog] input >> nth=0", "shop").await;
    page.fill("[role=alertdialog] input >> nth=1", "web/*").await;
    page.check_page("console-grant").await;
    page.click("[role=alertdialog] button:has-text('Give the role')").await;
    page.sees("tr:has-text('team:shop')").await;
    page.fill("form input >> nth=0", "dora").await;
    page.fill("form input >> nth=1", "web/dev").await;
    page.press("Enter").await;
    page.sees("tr:has-text('apply'):has-text('to team:shop on web/*')").await;
    assert!(page.url().await.ends_with("/-/grants?user=dora&stack=web%2Fdev"), "{}", page.url().await);
    page.check_page("console-why").await;
    // The same name of an environment is another one, and of a state too.
    for kind in ["tfstate", "environment"] {
        page.run(&json!({ "command": "select", "what": "form select", "value": kind })).await;
        page.fill("form input >> nth=1", "web/live").await;
        page.press("Enter").await;
        page.arrives(&format!("{console}/{ORG}/-/grants?user=dora&stack=web%2Flive&kind={kind}")).await;
        page.sees("dt:has-text('On web/live')").await;
        page.sees("tr:has-text('apply'):has-text('to team:shop on web/*')").await;
    }
    page.click("[aria-label='Remove the grant to team:shop on web/*']").await;
    page.click("button:has-text('Remove the grant')").await;
    page.sees("text=There are no grants").await;

    // The secret of a token is shown once.
    page.open(&format!("{console}/{ORG}/-/tokens?of=organization")).await;
    page.click("button:has-text('Create a token')").await;
    page.fill("[role=alertdialog] input >> nth=0", "deploys").await;
    page.run(&json!({ "command": "select", "what": "[role=alertdialog] select >> nth=1", "value": "28800" }))
        .await;
    page.check_page("console-new-token").await;
    page.click("[role=alertdialog] button:has-text('Create the token')").await;
    page.sees(".once code").await;
    page.check_briefly("console-once").await;
    let secret = page.value(".once code").await;
    assert!(secret.starts_with("swt_"), "{secret}");
    page.click("button:has-text('I have it')").await;
    page.sees("tr:has-text('deploys')").await;
    assert!(!page.text().await.contains(&secret), "the secret is still shown");
    page.click("[aria-label='Change deploys']").await;
    page.click("[role=menuitem]:has-text('Revoke')").await;
    page.click("button:has-text('Revoke the token')").await;
    page.sees("main:not(:has(tr:has-text('deploys')))").await;
    page.open(&format!("{console}/{ORG}/-/audit?event=token.delete")).await;
    page.sees("td:has-text('deploys')").await;

    // What is protected is not deleted, until the protection is lifted.
    page.open(&format!("{console}/{ORG}/web/dev")).await;
    page.click("button:has-text('Protect')").await;
    page.fill("[role=alertdialog] textarea", "it is production").await;
    page.check_briefly("console-protect").await;
    page.click("button:has-text('Protect it')").await;
    page.sees(".notice:has-text('it is production')").await;
    page.check_page("console-protected").await;
    let refused = cli.run(["stack", "rm", "--yes", "--force"]).await.assert_failure();
    assert_says(&refused, &["with the reason \"it is production\""]);
    page.click("button:has-text('Lift')").await;
    page.click("button:has-text('Lift it')").await;
    page.sees("button:has-text('Protect')").await;
    cli.run(["stack", "rm", "--yes", "--force"]).await.assert_success();
}

#[tokio::test]
async fn a_stack_is_renamed_deleted_and_undeleted() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "web", PROGRAM).await;
    cli.run(UP).await.assert_success();
    // The address that the client prints.
    let settings = format!("/{ORG}/web/dev/settings/options");
    let (mut page, console) = signed_in(&app, &settings).await;
    page.click("button:has-text('New tag')").await;
    page.fill("[role=alertdialog] input >> nth=0", "team").await;
    page.fill("[role=alertdialog] input >> nth=1", "shop").await;
    page.click("[role=alertdialog] button:has-text('Add it')").await;
    page.sees("tr:has-text('team'):has-text('shop')").await;
    page.check_page("console-stack-settings").await;
    page.click("button:text-is('Rename')").await;
    page.fill("[role=alertdialog] input >> nth=1", "prod").await;
    page.check_briefly("console-rename").await;
    page.click("[role=alertdialog] button:has-text('Rename it')").await;
    page.arrives(&format!("{console}/{ORG}/web/prod/settings/options")).await;
    page.sees("li:has-text('Rename acme/web/dev to acme/web/prod')").await;

    page.click("button:text-is('Delete')").await;
    page.fill("[role=alertdialog] input", "web/prod").await;
    page.check_page("console-delete-stack").await;
    page.click("[role=alertdialog] button:has-text('Delete it')").await;
    page.arrives(&format!("{console}/{ORG}/-/deleted")).await;
    page.sees("tr:has-text('web/prod')").await;
    page.check_page("console-deleted-stack").await;
    page.click("[aria-label='Undelete web/prod']").await;
    page.click("button:has-text('Undelete it')").await;
    page.sees("text=No deleted stack is kept").await;
    page.open(&format!("{console}/{ORG}/web/prod")).await;
    page.sees("th:has-text('password')").await;
    // The address of a search of resources, which the client prints.
    page.open(&format!("{console}/{ORG}/resources?query=type%3Abucket")).await;
    page.sees("text=This server does not search the resources of all stacks").await;
    page.open(&format!("{console}/{ORG}/-/audit?event=stack.undelete")).await;
    page.sees("tr:has-text('web/prod'):has-text('browser')").await;
}

#[tokio::test]
async fn the_server_is_shown_to_its_admins_and_issuers_are_added() {
    let app = TestApp::on(BACKEND).await;
    app.member("bob", "laptop").await;
    make_stack(&app, "web").await;
    save_outputs(&app, "web", &json!({})).await;
    send_state(&app, &format!("/tfstate/{ORG}/net/prod"), &tfstate(1, "10.0.0.0/16")).await;
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/-/operator")).await;
    page.sees("h1:has-text('Server')").await;
    page.sees(&format!("tr:has-text('{ORG}')")).await;
    page.sees("text=Nothing waits").await;
    let health = "section:has(h2:has-text('Health')) .facts div";
    page.sees(&format!("{health}:has(dt:text-is('Works')) .badge.good:text-is('Yes')")).await;
    let version = env!("CARGO_PKG_VERSION");
    page.sees(&format!("{health}:has(dt:text-is('Version')) dd:text-is('{version}')")).await;
    page.sees(&format!("{health}:has(dt:text-is('Key that signs'))")).await;
    let stored = page.texts(&format!("[aria-label='Storage by organization'] tr:has-text('{ORG}') td")).await;
    assert_eq!(stored[..4], [ORG, "1", "1", "2"], "{stored:?}");
    page.check_page("console-server").await;

    page.open(&format!("{console}/{ORG}/-/issuers")).await;
    page.click("button:has-text('Add an issuer')").await;
    let issuer = Issuer::new("https://ci.example.com");
    page.fill("[role=alertdialog] input >> nth=0", &issuer.url).await;
    page.fill("[role=alertdialog] input >> nth=1", "Our CI").await;
    page.fill("[role=alertdialog] textarea", &issuer.key_set().to_string()).await;
    page.check_page("console-add-issuer").await;
    page.click("[role=alertdialog] button:has-text('Add the issuer')").await;
    page.sees("tr:has-text('https://ci.example.com')").await;
    page.click("button:has-text('Add a policy')").await;
    page.fill("[role=alertdialog] textarea", "sub=repo:acme/app").await;
    page.check_page("console-add-policy").await;
    page.click("[role=alertdialog] button:has-text('Add the policy')").await;
    page.sees("tr:has-text('sub=repo:acme/app')").await;
    page.check_page("console-issuers").await;
    let issuers = app.get(&format!("/api/orgs/{ORG}/oidc/issuers")).send().await.expect(200);
    assert_eq!(issuers["oidcIssuers"][0]["name"], "Our CI");
    page.click("[aria-label='Change Our CI']").await;
    page.click("[role=menuitem]:has-text('Delete')").await;
    page.click("[role=alertdialog] button:has-text('Delete it')").await;
    page.sees("text=No issuer is registered").await;

    // Somebody else finds nothing there, and no way to it.
    let (mut page, _) = signed_in_as(&app, "bob", &format!("/{ORG}/-/operator")).await;
    page.sees("text=There is nothing at this address").await;
    let text = page.text().await;
    assert!(!text.contains("Server\n") && !text.contains("Issuers"), "{text}");
}

#[tokio::test]
async fn an_update_that_waits_for_a_sweep_is_shown() {
    let app = TestApp::on_manual_clock(BACKEND).await;
    app.post(&format!("/api/stacks/{ORG}/web"), &json!({ "stackName": "dev" })).send().await.expect(200);
    let begin = json!({ "updateKind": "update", "program": {} });
    app.post(&format!("/api/stacks/{ORG}/web/dev/begin-update"), &begin).send().await.expect(200);
    app.advance(LEASE + Duration::from_secs(31));
    let operator = format!("/{ORG}/-/operator");
    let (mut page, console) = signed_in(&app, &operator).await;
    let row = format!("[aria-label='Updates whose client is gone'] tr:has-text('{ORG}/web/dev')");
    page.sees(&format!("{row}:has-text('{USER}')")).await;
    page.check_page("console-server-waits").await;
    app.sweep().await;
    page.open(&format!("{console}{operator}")).await;
    page.sees("text=Nothing waits").await;
    assert!(!page.text().await.contains("web/dev"));
}

#[tokio::test]
async fn a_session_that_ends_loses_nothing_that_was_typed() {
    let app = TestApp::on(BACKEND).await;
    let name = json!({ "project": "web", "name": "dev" });
    app.post(&format!("/api/esc/environments/{ORG}"), &name).send().await.expect(204);
    let editor = "textarea[aria-label=Definition]";
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/esc/web/dev")).await;
    page.sees(editor).await;
    page.fill(editor, "values:\n  region: eu-1\n").await;
    page.sees("text=No errors").await;
    page.run(&json!({ "command": "forget" })).await;
    page.click("button:text-is('Save')").await;
    page.sees("text=Your session is over").await;
    let typed = page.run(&json!({ "command": "input", "what": editor })).await;
    assert_eq!(typed, "values:\n  region: eu-1\n");
    page.sees("a[target=_blank]:has-text('Sign in')").await;
    page.check_failure("console-session-over", &["status of 401"]).await;
    // A page without such a text leads to the sign-in, and back.
    page.click("button:has-text('Drop changes')").await;
    page.open(&format!("{console}/{ORG}/-/locks")).await;
    page.sees("input[name=login]").await;
}

#[tokio::test]
async fn a_form_stays_when_the_session_ends_and_works_after_that() {
    let app = TestApp::on(BACKEND).await;
    let (mut page, _) = signed_in(&app, &format!("/{ORG}/-/members")).await;
    page.click("button:has-text('Invite')").await;
    let login = "[role=alertdialog] input";
    page.fill(login, "carol").await;
    page.run(&json!({ "command": "forget" })).await;
    page.click("[role=alertdialog] button:has-text('Make the link')").await;
    page.sees("[role=alertdialog] :text('Your session is over')").await;
    page.sees("[role=alertdialog] a[target=_blank]:has-text('Sign in')").await;
    assert_eq!(page.run(&json!({ "command": "input", "what": login })).await, "carol");
    page.run(&json!({ "command": "problems" })).await;
    page.run(&json!({ "command": "recall" })).await;
    page.click("[role=alertdialog] button:has-text('Make the link')").await;
    page.click("button:has-text('I have it')").await;
    page.sees("tr:has-text('carol')").await;
    assert!(!page.text().await.contains("Your session is over"));
}

/// A definition with a secret.
const DEFINITION: &str = "values:
  region: eu-1
  password:
    fn::secret: hunter2
  pulumiConfig:
    page: <img src=x onerror=alert(1)>
    password: ${password}
";

#[tokio::test]
async fn an_environment_is_edited_while_somebody_else_edits_it() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app);
    cli.write("environment.yaml", DEFINITION);
    let name = format!("{ORG}/web/prod");
    cli.run(["env", "init", &name, "--file", "environment.yaml"]).await.assert_success();
    cli.run(["env", "tag", &name, "team", "shop"]).await.assert_success();
    cli.write("top.yaml", "imports: [web/prod]\n");
    cli.run(["env", "init", &format!("{ORG}/web/top"), "--file", "top.yaml"]).await.assert_success();

    let environment = format!("/{ORG}/esc/web/prod");
    let editor = "textarea[aria-label=Definition]";
    let (mut page, console) = signed_in(&app, &environment).await;
    page.sees(editor).await;
    page.sees(".card:has-text('Imported by') a:text-is('web/top')").await;
    page.check_page("console-environment").await;
    page.fill(editor, "values:\n  region: ${nope}\n").await;
    page.sees(".list-row:has-text('unknown property')").await;
    page.check_page("console-environment-errors").await;

    // The secret is masked in the editor, and stays what it was.
    let edited = "values:\n  region: eu-2\n  password: {fn::secret: {ciphertext: ••••••••1}}\n";
    page.fill(editor, edited).await;
    page.sees("text=No errors").await;
    cli.run(["env", "set", &name, "region", "eu-9"]).await.assert_success();
    page.click("button:text-is('Save')").await;
    page.sees("text=Somebody saved revision 3 while you edited").await;
    page.sees(".removed:has-text('eu-9')").await;
    // The conflict is an error of the browser's console.
    page.run(&json!({ "command": "problems" })).await;
    page.check_page("console-environment-overtaken").await;
    let kept = cli.run(["env", "get", &name, "region"]).await.assert_success();
    assert!(kept.stdout.contains("eu-9"), "{kept}");
    page.click("button:has-text('Save mine over revision 3')").await;
    page.sees("text=Saved as revision 4").await;
    let opened = cli.run(["env", "open", &name]).await.assert_success().json();
    assert_eq!(opened, json!({ "region": "eu-2", "password": "hunter2" }));
    page.click("button:has-text('Decrypt')").await;
    page.click("button:has-text('Hide secrets')").await;

    // What is not saved is not lost by a wrong click.
    page.fill(editor, "values: {}\n").await;
    page.click(".tabs a:has-text('Opened values')").await;
    page.sees("[role=alertdialog]:has-text('Leave without saving?')").await;
    page.check_briefly("console-leaving").await;
    page.click("[role=alertdialog] button:text-is('Leave')").await;

    page.click("button:has-text('Open the values')").await;
    page.sees("th:has-text('password')").await;
    assert!(!page.text().await.contains("hunter2"));
    page.check_page("console-environment-values").await;
    page.click(".value button:has-text('Show')").await;
    page.sees("code:has-text('hunter2')").await;

    page.open(&format!("{console}{environment}/revisions?from=2&to=4")).await;
    page.sees(".removed:has-text('onerror')").await;
    page.sees(".added:has-text('eu-2')").await;
    assert!(!page.text().await.contains("hunter2"));
    page.check_page("console-environment-revisions").await;
    page.open(&format!("{console}{environment}?version=2")).await;
    page.sees("h2:has-text('Definition in revision 2')").await;
    let old = page.input("textarea[aria-label='Definition in revision 2']").await;
    assert!(old.contains("onerror") && !old.contains("eu-2") && !old.contains("hunter2"), "{old}");
    page.check_page("console-environment-old").await;
    page.open(&format!("{console}{environment}/revisions")).await;
    page.click("[aria-label='Tag revision 2']").await;
    page.fill("[role=alertdialog] input", "stable").await;
    page.click("[role=alertdialog] button:has-text('Add the tag')").await;
    page.sees(".tag:has-text('stable')").await;
    page.click("[aria-label='More about revision 2']").await;
    page.click("[role=menuitem]:has-text('Restore')").await;
    page.click("[role=alertdialog] button:has-text('Restore it')").await;
    page.sees("tr:has-text('latest') a:text-is('5')").await;
    let opened = cli.run(["env", "open", &name]).await.assert_success().json();
    assert_eq!(opened["pulumiConfig"]["password"], "hunter2");

    page.open(&format!("{console}{environment}/settings")).await;
    page.sees("td:has-text('shop')").await;
    page.check_page("console-environment-settings").await;
    page.click("a:has-text('What a member may do with it, and why')").await;
    page.arrives(&format!("{console}/{ORG}/-/grants?stack=web%2Fprod&kind=environment")).await;
    page.sees("label:has-text('Environment, as PROJECT/NAME')").await;
    page.open(&format!("{console}/{ORG}/-/environments?q=team%3Dshop")).await;
    page.sees(".item a:text-is('prod')").await;
    page.check_page("console-environments").await;
    for event in ["environment.decrypt", "environment.open", "environment.edit"] {
        page.open(&format!("{console}/{ORG}/-/audit?event={event}")).await;
        page.sees(&format!("tr:has-text('{event}'):has-text('browser')")).await;
    }
}
