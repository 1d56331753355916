//! The server's memory for a large state on AWS.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use statewright_shared::adapters::SystemClock;
use statewright_shared::adapters::aws::set_up;
use statewright_shared::services::store::compression::gzip;
use statewright_tests::aws::{StandIn, clients};
use statewright_tests::tools;
use tokio::process::Command;

use crate::server::Server;

/// 50 MB, of which a third does not compress.
fn state() -> Vec<u8> {
    let noise = |number: u32| -> String {
        let line = |part: u32| Sha256::digest(format!("{number} {part}"));
        (0..37).flat_map(|part| line(part).to_vec()).map(|byte| format!("{byte:02x}")).collect()
    };
    let resource = |number| {
        json!({
            "urn": format!("urn:pulumi:dev::heavy::pkg:m:T::r{number}"), "custom": true, "id": format!("id-{number}"),
            "type": "pkg:m:T", "inputs": { "noise": noise(number) }, "outputs": { "same": "x".repeat(2_500) },
        })
    };
    let resources: Vec<Value> = (0..10_000).map(resource).collect();
    let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
    let state = json!({ "version": 3, "deployment": { "manifest": manifest, "resources": resources } });
    state.to_string().into_bytes()
}

/// The peak of the process's memory since the last call, minus its memory then, in MB.
struct Memory {
    folder: String,
    before: u64,
}

impl Memory {
    fn of(server: &Server) -> Self {
        Self { folder: format!("/proc/{}", server.pid().as_raw_nonzero()), before: 0 }.reset()
    }

    fn reset(mut self) -> Self {
        // Reset the peak to the current memory.
        fs::write(format!("{}/clear_refs", self.folder), "5").unwrap();
        self.before = self.peak();
        self
    }

    fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("{}/status", self.folder)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1000
    }

    fn taken(&self) -> u64 {
        self.peak() - self.before
    }
}

/// I9: memory is limited to a small multiple of the state's size.
#[tokio::test]
async fn i9_a_state_of_50_mb_on_aws_is_held_in_memory_once() {
    let stand_in = StandIn::of_this_process();
    let names = StandIn::fresh_names();
    set_up(&clients(&stand_in.url).await, &names, &SystemClock).await.unwrap();
    let mut command = Command::new(tools::statewright());
    command
        .args(["serve", "--first-user", "--listen", "127.0.0.1:0", "--aws-attempt-timeout", "60s"])
        .env_clear();
    command.envs(stand_in.environment(&names)).stderr(Stdio::null());
    let server = Server::start_command(command, true).await;
    let (client, token) = (reqwest::Client::new(), format!("token {}", server.token.clone().unwrap()));
    let (text, stack) = (state(), format!("{}/api/stacks/main/heavy", server.url));
    let megabytes = (text.len() / 1_000_000) as u64;
    assert!((48..60).contains(&megabytes), "{megabytes}");
    let sent = gzip(&text);
    let made = client.post(&stack).header("Authorization", &token).json(&json!({ "stackName": "dev" }));
    assert!(made.send().await.unwrap().status().is_success());

    let mut memory = Memory::of(&server);
    // The second one is compared with a base.
    for _ in 0..2 {
        let import = client.post(format!("{stack}/dev/import")).header("Authorization", &token);
        let import = import.header("Content-Encoding", "gzip").body(sent.clone()).send().await.unwrap();
        assert!(import.status().is_success(), "{import:?}");
        let taken = memory.taken();
        assert!(taken < 4 * megabytes, "an import of {megabytes} MB took {taken}");
        memory = memory.reset();
    }
    let export = async |encoding: Option<&str>| {
        let mut export = client.get(format!("{stack}/dev/export")).header("Authorization", &token);
        if let Some(encoding) = encoding {
            export = export.header("Accept-Encoding", encoding);
        }
        export.send().await.unwrap().bytes().await.unwrap()
    };
    let plain = export(None).await;
    let taken = memory.taken();
    assert!(taken < 3 * megabytes, "an export took {taken} MB");
    let exported: Value = serde_json::from_slice(&plain).unwrap();
    assert_eq!(exported["deployment"]["resources"].as_array().unwrap().len(), 10_000);
    let memory = memory.reset();
    let packed = export(Some("gzip")).await;
    assert!(packed.len() < plain.len() / 2, "{}", packed.len());
    let taken = memory.taken();
    assert!(taken < 2 * megabytes, "an export of the stored gzip took {taken} MB");
}
