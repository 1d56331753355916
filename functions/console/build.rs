//! Embeds the files of `dist`, compressed, under a path with their hash. They are built from `web` beforehand, so
//! this needs no Node.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

// The linker options of functions.
#[path = "../lambda/link/build.rs"]
mod link;

/// The page, which names the other files.
const PAGE: &str = "index.html";

fn main() {
    link::main();
    let of_crate = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let (dist, out) = (of_crate.join("dist"), PathBuf::from(variable("OUT_DIR")));
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", dist.display());
    let files = files(&dist);
    let mut hash = Sha256::new();
    for (name, bytes) in &files {
        // With lengths, so that no two folders have the same input.
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name);
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    }
    let hash: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let folder = format!("/assets/{hash}/");
    let mut table = format!("/// The path of the files.\nstatic FOLDER: &str = {folder:?};\n");
    table.push_str("/// The files.\nstatic FILES: &[File] = &[\n");
    let mut page = String::new();
    for (name, bytes) in &files {
        if name == PAGE {
            let text = String::from_utf8(bytes.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
            write(&out, "page.gz", &gzip(text.replace("\"./", &format!("\"{folder}")).as_bytes()));
            page = format!("static PAGE: &[u8] = include_bytes!({:?});\n", out.join("page.gz"));
            continue;
        }
        let stored = format!("{name}.gz");
        write(&out, &stored, &gzip(bytes));
        let _ = writeln!(
            table,
            "    File {{ name: {name:?}, media: {:?}, gzip: include_bytes!({:?}) }},",
            media(name),
            out.join(&stored)
        );
    }
    assert!(!page.is_empty(), "{} has no {PAGE}: build the console", dist.display());
    table.push_str("];\n/// The page, compressed.\n");
    table.push_str(&page);
    write(&out, "files.rs", table.as_bytes());
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The files of the folder, by name.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let listed = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = listed
        .map(|entry| {
            let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (name, bytes)
        })
        .collect();
    files.sort();
    files
}

fn media(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => panic!("{name}: files of this kind are not served"),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_else(|error| panic!("{error}"))
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
