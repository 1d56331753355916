//! The link file of a folder: it names the state of a configuration and its server, so that commands in that
//! folder and below need no name. It contains no token and may be committed.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::StateAddress;
use statewright_shared::domain::server_url::ServerUrl;

use crate::managed;

pub(crate) const FILE: &str = ".statewright.json";

/// The format version that this program writes. It reads all versions up to it.
const FORMAT: u32 = 1;

/// The size limit of a link file, in bytes.
const BYTES_MAX: u64 = 64 * 1024;

/// A state and its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) server: ServerUrl,
    /// The name of the state when the link was written, for people.
    pub(crate) address: StateAddress,
    pub(crate) id: StateId,
}

/// A link that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Linked {
    pub(crate) link: Link,
    /// The folder with the link file.
    pub(crate) folder: PathBuf,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Text {
    format: u32,
    server: String,
    organization: String,
    project: String,
    state: String,
    id: String,
}

impl Link {
    fn parse(text: &[u8]) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        // Read first: a newer format may have other members.
        let Format { format } = serde_json::from_slice(text).context("it is not valid JSON for a link")?;
        ensure!(format <= FORMAT, "it has format {format} of a newer version: upgrade statewright");
        let text: Text = serde_json::from_slice(text).context("it is not valid JSON for a link")?;
        let id =
            StateId::parse(&text.id).with_context(|| format!("{:?} is not the id of a state", text.id))?;
        let address = StateAddress::parse(&text.organization, &text.project, Some(&text.state))?;
        Ok(Self { server: ServerUrl::parse(&text.server)?, address, id })
    }

    fn text(&self) -> anyhow::Result<String> {
        let StateAddress { org, project, state } = &self.address;
        let text = Text {
            format: FORMAT,
            server: self.server.to_string(),
            organization: org.to_string(),
            project: project.to_string(),
            state: state.to_string(),
            id: self.id.to_string(),
        };
        Ok(serde_json::to_string_pretty(&text).context("cannot serialize the link")? + "\n")
    }

    /// Writes the link file into this folder, replacing an existing one.
    ///
    /// # Errors
    /// If the folder is not writable.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let file = folder.join(FILE);
        managed::replace(&file, &self.text()?)?;
        Ok(file)
    }
}

impl Linked {
    /// The link in this folder itself, not in a parent folder.
    ///
    /// # Errors
    /// Like [`Linked::find`].
    pub(crate) fn of(folder: &Path) -> anyhow::Result<Option<Self>> {
        Ok(Self::find(folder)?.filter(|linked| linked.folder == folder))
    }

    /// Finds the link of this folder or of its nearest parent that has one.
    ///
    /// # Errors
    /// If the link cannot be read, or belongs to another user, who could use it to steal the token.
    pub(crate) fn find(folder: &Path) -> anyhow::Result<Option<Self>> {
        for folder in folder.ancestors() {
            let file = folder.join(FILE);
            let opened = match fs::File::open(&file) {
                Ok(opened) => opened,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    continue;
                }
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
            };
            let link = read(opened).with_context(|| {
                format!(
                    "{} is not a valid link to a state: write a new one with `statewright state init --force STATE`",
                    file.display()
                )
            })?;
            return Ok(Some(Self { link, folder: folder.to_owned() }));
        }
        Ok(None)
    }
}

fn read(file: fs::File) -> anyhow::Result<Link> {
    let owner = file.metadata().context("cannot read its metadata")?.uid();
    let is_trusted = owner == 0 || owner == rustix::process::geteuid().as_raw();
    if !is_trusted {
        bail!("it belongs to another user and could send your token to a server of theirs");
    }
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text).context("cannot read it")?;
    Link::parse(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "019b7c3a-0000-7000-8000-000000000001";

    fn link() -> Link {
        Link {
            server: ServerUrl::parse("https://state.example.com/base").unwrap(),
            address: StateAddress::parse("acme", "net", Some("prod")).unwrap(),
            id: StateId::parse(ID).unwrap(),
        }
    }

    #[test]
    fn the_nearest_link_above_is_found() {
        let home = tempfile::tempdir().unwrap();
        let below = home.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        assert_eq!(Linked::find(&below).unwrap(), None);
        link().write(home.path()).unwrap();
        assert_eq!(
            Linked::find(&below).unwrap().unwrap(),
            Linked { link: link(), folder: home.path().into() }
        );
        let nearer = Link { server: ServerUrl::parse("http://127.0.0.1:1").unwrap(), ..link() };
        nearer.write(&home.path().join("a")).unwrap();
        assert_eq!(Linked::find(&below).unwrap().unwrap().link, nearer);
        let left: Vec<_> =
            fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "nothing else is left: {left:?}");
    }

    #[test]
    fn a_link_has_the_documented_format() {
        let text = link().text().unwrap();
        let expected = format!(
            "{{\n  \"format\": 1,\n  \"server\": \"https://state.example.com/base\",\n  \"organization\": \"acme\",\n  \
             \"project\": \"net\",\n  \"state\": \"prod\",\n  \"id\": \"{ID}\"\n}}\n"
        );
        assert_eq!(text, expected);
        assert_eq!(Link::parse(text.as_bytes()).unwrap(), link());
    }

    #[test]
    fn invalid_links_are_refused_with_their_path_and_a_fix() {
        let home = tempfile::tempdir().unwrap();
        let good = link().text().unwrap();
        for (bad, why) in [
            ("", "not valid JSON for a link"),
            ("[]", "not valid JSON for a link"),
            ("{\"format\":1}", "not valid JSON for a link"),
            (&good.replace(ID, "1"), "not the id of a state"),
            (&good.replace("acme", "a"), "organization name"),
            (&good.replace("https://", "ftp://"), "server address"),
            ("{\"format\":2,\"of\":\"the future\"}", "of a newer version"),
        ] {
            fs::write(home.path().join(FILE), bad).unwrap();
            let refused = format!("{:#}", Linked::find(home.path()).unwrap_err());
            assert!(
                refused.contains(why) && refused.contains(FILE) && refused.contains("state init"),
                "{refused}"
            );
        }
    }
}
