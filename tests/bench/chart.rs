//! `bench chart`: the picture of whole `up`s that the pages show, made of measured figures.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

/// The ratio to the stub that we hold ourselves to.
const LIMIT: f64 = 1.03;

/// What to draw, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The figures, as `bench up --save` writes them
    #[arg(long, value_name = "FILE", default_value = "tests/bench/figures.json")]
    from: PathBuf,
    /// The SVG
    #[arg(long, value_name = "FILE", default_value = "shared/docs/up.svg")]
    to: PathBuf,
}

/// The medians of one subject and size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) subject: String,
    pub(crate) resources: usize,
    pub(crate) rounds: usize,
    /// Of a whole `up`.
    pub(crate) seconds: f64,
    /// Of the same with the stub.
    pub(crate) stub_seconds: f64,
    pub(crate) ratio: f64,
    /// The ratio of a second stub to the first.
    pub(crate) noise: f64,
}

/// Adds figures to a file, in place of older ones of the same subject and size.
pub(crate) fn save(file: &Path, figures: Vec<Figure>) -> io::Result<()> {
    let kept = if file.exists() { read(file)? } else { Vec::new() };
    let all: BTreeMap<(usize, String), Figure> = kept
        .into_iter()
        .chain(figures)
        .map(|figure| ((figure.resources, figure.subject.clone()), figure))
        .collect();
    let all: Vec<&Figure> = all.values().collect();
    fs::write(file, serde_json::to_string_pretty(&all)? + "\n")
}

fn read(file: &Path) -> io::Result<Vec<Figure>> {
    Ok(serde_json::from_slice(&fs::read(file)?)?)
}

pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    fs::write(&arguments.to, svg(&read(&arguments.from)?))
}

/// The width of the picture, in units: it is shown at about this many pixels, on a telephone at three quarters of them.
const WIDTH: f64 = 480.0;

/// Where bars begin, and how long the longest may be, so that its text fits behind it.
const LEFT: f64 = 120.0;
const LONGEST: f64 = 240.0;

/// What the figures of a subject are called, and its bar's class.
fn named(subject: &str) -> (&str, &str) {
    match subject {
        "statewright" => ("Statewright", "ours"),
        "folder" => ("DIY folder", "other"),
        other => (other, "other"),
    }
}

/// Bars of the ratios to the stub, a group for each size.
fn svg(figures: &[Figure]) -> String {
    let mut sizes: BTreeMap<usize, Vec<&Figure>> = BTreeMap::new();
    for figure in figures {
        sizes.entry(figure.resources).or_default().push(figure);
    }
    let most = figures.iter().map(|figure| figure.ratio).fold(LIMIT, f64::max);
    let x = |ratio: f64| LEFT + LONGEST * ratio / most;
    let (mut body, mut y) = (String::new(), 64.0);
    for (resources, mut figures) in sizes {
        figures.sort_by_key(|figure| figure.subject != "statewright");
        let _ = writeln!(
            body,
            "<text class=\"size\" x=\"8\" y=\"{:.0}\">{} resources</text>",
            y + 14.0,
            thousands(resources)
        );
        y += 24.0;
        let stub = figures.first().map_or(0.0, |figure| figure.stub_seconds);
        let stub = ("stores nothing", "stub", 1.0, stub);
        let bars = figures.iter().map(|figure| {
            let (name, class) = named(&figure.subject);
            (name, class, figure.ratio, figure.seconds)
        });
        for (name, class, ratio, seconds) in [stub].into_iter().chain(bars) {
            let _ = writeln!(
                body,
                "<text class=\"name\" x=\"{:.0}\" y=\"{:.0}\">{name}</text>\n\
                 <rect class=\"{class}\" x=\"{LEFT:.0}\" y=\"{y:.0}\" width=\"{:.1}\" height=\"18\" rx=\"2\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.0}\">{ratio:.2}\u{d7}  {seconds:.1} s</text>",
                LEFT - 8.0,
                y + 14.0,
                x(ratio) - LEFT,
                x(ratio.max(LIMIT)) + 8.0,
                y + 14.0,
            );
            y += 24.0;
        }
        y += 12.0;
    }
    let limit = x(LIMIT);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" width=\"{WIDTH:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-labelledby=\"title\">\n\
         <title id=\"title\">Time of pulumi up, relative to a server that stores nothing</title>\n\
         <style>\n\
         text {{ font: 14px system-ui, sans-serif; fill: #1f2328 }}\n\
         .head, .size {{ font-weight: 600 }}\n\
         .name {{ text-anchor: end }}\n\
         .stub {{ fill: #afb8c1 }} .ours {{ fill: #0969da }} .other {{ fill: #bc4c00 }}\n\
         .limit {{ stroke: #1f2328; stroke-width: 1.5; stroke-dasharray: 4 3 }}\n\
         @media (prefers-color-scheme: dark) {{\n\
         text {{ fill: #e6edf3 }}\n\
         .stub {{ fill: #6e7681 }} .ours {{ fill: #4493f8 }} .other {{ fill: #db6d28 }}\n\
         .limit {{ stroke: #e6edf3 }}\n\
         }}\n\
         </style>\n\
         <text class=\"head\" x=\"8\" y=\"20\">Time of a whole pulumi up</text>\n\
         {body}\
         <line class=\"limit\" x1=\"{limit:.1}\" y1=\"52\" x2=\"{limit:.1}\" y2=\"{end:.0}\"/>\n\
         <text x=\"{limit:.1}\" y=\"46\" text-anchor=\"middle\">our limit {LIMIT:.2}</text>\n\
         </svg>\n",
        height = y,
        end = y - 14.0,
    )
}

fn thousands(number: usize) -> String {
    match (number / 1000, number % 1000) {
        (0, rest) => rest.to_string(),
        (thousands, rest) => format!("{thousands},{rest:03}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
    }

    #[test]
    fn the_chart_of_the_pages_shows_the_committed_figures() {
        let figures = read(&at("tests/bench/figures.json")).unwrap();
        let chart = fs::read_to_string(at("shared/docs/up.svg")).unwrap();
        assert_eq!(chart, svg(&figures), "make it again with `bench chart`");
    }

    #[test]
    fn figures_replace_older_ones_of_the_same_subject_and_size() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("figures.json");
        let figure = |subject: &str, resources, seconds| Figure {
            subject: subject.to_owned(),
            resources,
            rounds: 1,
            seconds,
            stub_seconds: 1.0,
            ratio: seconds,
            noise: 1.0,
        };
        save(&file, vec![figure("folder", 200, 2.0), figure("folder", 1000, 3.0)]).unwrap();
        save(&file, vec![figure("folder", 200, 4.0), figure("statewright", 200, 1.0)]).unwrap();
        let wanted =
            [figure("folder", 200, 4.0), figure("statewright", 200, 1.0), figure("folder", 1000, 3.0)];
        assert_eq!(read(&file).unwrap(), wanted);
    }
}
