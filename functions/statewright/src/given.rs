//! Addresses of an HTTP backend that a client receives outside of its configuration: from options of `init`,
//! and from the environment.
//!
//! Source: opentofu v1.12.6 and terraform v1.5.7, `internal/command/init.go` (`backendConfigOverrideBody`), `meta.go` and
//! `cmd/tofu/main.go` (`mergeEnvArgs`), `internal/backend/remote-state/http/backend.go`.

use std::ffi::OsString;
use std::path::Path;

use crate::hcl::{self, ADDRESSES, Address};

/// The environment variables for [`ADDRESSES`], used where nothing else sets them.
pub(crate) const VARIABLES: [&str; 3] = ["TF_HTTP_ADDRESS", "TF_HTTP_LOCK_ADDRESS", "TF_HTTP_UNLOCK_ADDRESS"];

/// An address from an option or the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenAddress {
    /// Its source, for people.
    pub(crate) what: String,
    pub(crate) address: Address,
}

impl GivenAddress {
    fn new(what: String, setting: &str, text: Option<String>) -> Self {
        Self { what, address: Address { setting: setting.to_owned(), text } }
    }
}

/// The addresses in `-backend-config` options of `init`, on its command line and in variables that extend it.
/// They take precedence over files of the configuration. Files that they name are relative to this folder.
pub(crate) fn by_options(arguments: &[OsString], folder: &Path) -> Vec<GivenAddress> {
    let of_variable = |name: &str| Some((name.to_owned(), std::env::var_os(name)?));
    let variables = ["TF_CLI_ARGS", "TF_CLI_ARGS_init"].into_iter().filter_map(of_variable);
    given(arguments, variables.map(|(name, text)| (name, text.to_string_lossy().into_owned())), folder)
}

fn given(
    arguments: &[OsString],
    variables: impl Iterator<Item = (String, String)>,
    folder: &Path,
) -> Vec<GivenAddress> {
    let mut found = Vec::new();
    for (name, text) in variables {
        match shlex::split(&text) {
            Some(words) => found.extend(of_words(words.into_iter(), folder)),
            // The client reports the error.
            None => found.push(GivenAddress::new(name, "address", None)),
        }
    }
    let arguments = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    found.extend(of_words(arguments, folder));
    found
}

fn of_words(mut words: impl Iterator<Item = String>, folder: &Path) -> Vec<GivenAddress> {
    const OPTION: &str = "-backend-config";
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        let option = word.strip_prefix('-').filter(|rest| rest.starts_with('-')).unwrap_or(&word);
        let value = match option.strip_prefix(OPTION) {
            Some("") => words.next().unwrap_or_default(),
            Some(rest) => match rest.strip_prefix('=') {
                Some(value) => value.to_owned(),
                None => continue,
            },
            None => continue,
        };
        match value.split_once('=') {
            Some((setting, text)) if ADDRESSES.contains(&setting.trim()) => {
                let what = format!("{} in {OPTION}", setting.trim());
                found.push(GivenAddress::new(what, setting.trim(), Some(text.trim().to_owned())));
            }
            Some(_) => {}
            None if value.is_empty() => {}
            None => match hcl::settings(&folder.join(&value)) {
                Some(settings) => found.extend(
                    settings
                        .into_iter()
                        .map(|it| GivenAddress { what: format!("{} in {value}", it.setting), address: it }),
                ),
                None => found.push(GivenAddress::new(value, "address", None)),
            },
        }
    }
    found
}

/// The addresses in environment variables.
pub(crate) fn by_environment() -> Vec<GivenAddress> {
    let of_variable = |(setting, name): (&&str, &str)| {
        let text = std::env::var_os(name).filter(|text| !text.is_empty())?;
        Some(GivenAddress::new(name.to_owned(), setting, text.into_string().ok()))
    };
    ADDRESSES.iter().zip(VARIABLES).filter_map(of_variable).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn backend_config_is_found_in_every_spelling() {
        let folder = tempfile::tempdir().unwrap();
        let text = "# of us\naddress = \"http://file\"\nretry_max = 3\nlock_address = var.x";
        fs::write(folder.path().join("b.hcl"), text).unwrap();
        fs::write(folder.path().join("b.json"), "{\"unlock_address\": \"http://json\"}").unwrap();
        let found = |arguments: &[&str], variables: &[&str]| -> Vec<(String, String, Option<String>)> {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            let variables = variables.iter().map(|text| ("TF_CLI_ARGS".to_owned(), (*text).to_owned()));
            let found = given(&arguments, variables, folder.path());
            found.into_iter().map(|it| (it.what, it.address.setting, it.address.text)).collect()
        };
        let one = |what: &str, setting: &str, text: Option<&str>| {
            (what.to_owned(), setting.to_owned(), text.map(str::to_owned))
        };
        let address = one("address in -backend-config", "address", Some("http://a?b=c"));
        for arguments in [
            &["init", "-backend-config=address=http://a?b=c"][..],
            &["init", "--backend-config=address=http://a?b=c"],
            &["-chdir=x", "init", "-backend-config", "address=http://a?b=c", "-reconfigure"],
        ] {
            assert_eq!(found(arguments, &[]), std::slice::from_ref(&address), "{arguments:?}");
        }
        assert_eq!(found(&["init"], &["-no-color '-backend-config=address=http://a?b=c'"]), [address]);
        assert_eq!(found(&["init"], &["'-backend-config=address"]), [one("TF_CLI_ARGS", "address", None)]);
        assert_eq!(
            found(&["init", "-backend-config=b.hcl", "-backend-config", "b.json"], &[]),
            [
                one("address in b.hcl", "address", Some("http://file")),
                one("lock_address in b.hcl", "lock_address", None),
                one("unlock_address in b.json", "unlock_address", Some("http://json")),
            ]
        );
        assert_eq!(found(&["init", "-backend-config=none"], &[]), [one("none", "address", None)]);
        for other in ["-backend=false", "-backend-config=retry_max=3", "-backend-config=", "-upgrade"] {
            assert_eq!(found(&["init", other], &[]), [], "{other}");
        }
    }
}
