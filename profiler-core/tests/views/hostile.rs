//! Names of a profile must not move the cursor, reorder the line, or fill the screen.

use profiler_core::attribute::FileGroups;
use profiler_core::view::hotspots::{By, hotspots};
use profiler_core::view::{data, markdown, text};
use unicode_width::UnicodeWidthStr;

use crate::profiles::{analyze, options, profile};

#[test]
fn harmful_characters_are_escaped() {
    for (text, want) in [
        ("plain", "plain"),
        ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\u{202e}gnp.exe", "\\u{202e}gnp.exe"),
        ("a\u{9b}31m", "a\\u{9b}31m"),
        ("zero\u{200b}width", "zero\\u{200b}width"),
        ("👩\u{200d}👩\u{200d}👧", "👩\u{200d}👩\u{200d}👧"),
        ("naïve 关数", "naïve 关数"),
    ] {
        assert_eq!(data::shown(text), want);
    }
}

#[test]
fn long_names_are_cut_in_the_middle() {
    let long = format!("first{}last", "x".repeat(10_000));
    let shown = data::shown(&long);
    assert_eq!(shown.chars().count(), data::MAX_CHARS);
    assert!(shown.starts_with("first") && shown.ends_with("last") && shown.contains('…'));
    let harmful = data::shown(&"\u{1b}".repeat(10_000)).into_owned();
    assert_eq!(harmful.chars().count(), data::MAX_CHARS);
}

#[test]
fn columns_start_at_one_place_whatever_the_names() {
    let long = format!("long{} src/a.rs:7", "é".repeat(5_000));
    let profile = profile(&[
        ("plain src/a.rs:1", 90),
        ("关数关数 src/a.rs:2", 80),
        ("e\u{301}\u{301}\u{301}clair src/a.rs:3", 70),
        ("👩\u{200d}👩\u{200d}👧 src/a.rs:4", 60),
        ("\u{1b}[31m\u{202e} src/a.rs:5", 50),
        ("line\nfeed src/a.rs:6", 40),
        (&long, 30),
    ]);
    let analysis = analyze(&profile, FileGroups::by_path(&profile), &[]);
    let document = hotspots(&analysis, &options(By::Line, 0));
    for width in [None, Some(60), Some(80), Some(140)] {
        let text = text::plain(&document, width);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
        let places: Vec<usize> = text
            .lines()
            .filter_map(|line| line.find("src/a.rs:").or_else(|| line.find("…/a.rs:")).map(|at| line[..at].width()))
            .collect();
        assert_eq!(places.len(), 7, "{text}");
        assert!(places.windows(2).all(|pair| pair[0] == pair[1]), "{places:?}\n{text}");
        if let Some(width) = width {
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
        }
    }
}

#[test]
fn markdown_keeps_data_in_its_place() {
    let profile = profile(&[("``` \n# [x](javascript:alert) @all ```` src/`a`.rs:1", 9), ("<b>&amp;| src/b.rs:1", 1)]);
    let mut analysis = analyze(&profile, FileGroups::by_path(&profile), &[]);
    analysis.costs.notes.push("odd: [link](http://example.com) `code` <b>".to_owned());
    let text = markdown::render(&hotspots(&analysis, &options(By::Function, 0)));
    let fences: Vec<&str> = text.lines().filter(|line| line.starts_with("```")).collect();
    assert_eq!(fences, ["`````text", "`````"], "{text}");
    assert!(text.contains(r"odd: \[link\](http://example.com) \`code\` \<b\>"), "{text}");
}
