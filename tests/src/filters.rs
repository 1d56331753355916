//! Replaces what differs from run to run in a client's output, before it is compared with a snapshot.
//!
//! The order of lines is not replaced: a test that shows resources runs a program that creates them one after
//! another (the bench setting `chain`), since concurrent resources come in any order, whatever `--parallel`
//! says.

use std::path::Path;

use crate::tools;

/// Patterns and their replacements, in the order of their use.
const FILTERS: &[(&str, &str)] = &[
    // Progress of a run that takes longer than a few seconds.
    (r"(?m)^ *@ \w+\.+ *\n", ""),
    (r"(?m)[ \t]+$", ""),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "[UUID]"),
    (r"Request ID: [^)\s]+", "Request ID: [REQUEST]"),
    (r"https?://(?:127\.0\.0\.1|localhost|\[::1\]):\d+", "[SERVER]"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))*", "[DATE]"),
    // Names of log files.
    (r"\d{8}T\d{6}(?:-\d+)?", "[DATE]"),
    (r"\((?:\d+m)?\d+(?:\.\d+)?s\)", "([TIME])"),
    (r"Duration: (?:\d+h)?(?:\d+m)?\d+s", "Duration: [TIME]"),
    (r"\btook (?:\d+h)?(?:\d+m)?\d+s\b", "took [TIME]"),
    (r"Last updated: .*", "Last updated: [AGO]"),
    (r"(?m)^( *pulumi\.(?:arch|os): ).*$", "$1[MACHINE]"),
    (r"LAST UPDATE +", "LAST UPDATE  "),
    // Ages in tables, with the padding that depends on their width.
    (r"(?m)(  )(?:now|\d+ (?:second|minute)s? (?:ago|from now))(?: +|$)", "$1[AGO]  "),
    (r"\b\d+ (?:seconds?|minutes?|s|min) ago\b", "[AGO]"),
];

/// Snapshot settings with all filters, for a client whose home is this folder.
pub fn settings(home: &Path) -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    // Paths first: they may contain what other patterns match.
    settings.add_filter(&literal(home), "[HOME]");
    settings.add_filter(&literal(tools::pulumi_bin_dir()), "[TOOLS]");
    for (pattern, replacement) in FILTERS {
        settings.add_filter(pattern, *replacement);
    }
    settings.set_prepend_module_to_snapshot(false);
    settings
}

/// A pattern that matches only this path.
fn literal(path: &Path) -> String {
    path.display()
        .to_string()
        .chars()
        .map(|character| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '/' | '_' => character.to_string(),
            special => format!(r"\x{{{:x}}}", u32::from(special)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_between_runs_are_hidden() {
        let text = " +  bench:index:Item item-00000 created (0.01s) \n\
             @ updating....\n\
             Duration: 1m12s\n\
             NAME  LAST UPDATE     RESOURCE COUNT\n\
             dev*  3 seconds ago   7\n\
             dev   now             7\n\
             Last updated: now (2026-11-27 23:35:54.654288205 +0000 UTC)\n\
             +3-0~0 0 Updated 9 seconds ago took 8s\n\
             pulumi.arch: amd64\n\
             View it at http://127.0.0.1:43121/acme/p/dev (Request ID: 9f2-x)\n\
             update 0197f3a2-6c1d-7b1e-8a55-0123456789ab at 2026-11-27T23:12:01.5Z\n\
             in /tmp/a.b/project, not in /tmp/a-b";
        settings(Path::new("/tmp/a.b")).bind(|| {
            insta::assert_snapshot!(text, @r"
 +  bench:index:Item item-00000 created ([TIME])
Duration: [TIME]
NAME  LAST UPDATE  RESOURCE COUNT
dev*  [AGO]  7
dev   [AGO]  7
Last updated: [AGO]
+3-0~0 0 Updated [AGO] took [TIME]
pulumi.arch: [MACHINE]
View it at [SERVER]/acme/p/dev (Request ID: [REQUEST])
update [UUID] at [DATE]
in [HOME]/project, not in /tmp/a-b
");
        });
    }
}
