//! Random histories of edits: no line is wrong without a mark.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use profiler_core::anchor::{Fate, LineMap, Renames};

use crate::blame;
use crate::history::{Editor, File, everyone};

/// Files of this project as they once were, one for each of several languages.
pub const FILES: [(&str, &str); 6] = [
    ("src/frames.rs", include_str!("../../../tests/data/anchor/frames.rs.txt")),
    ("src/sampler.c", include_str!("../../../tests/data/anchor/sampler.c.txt")),
    ("src/client.py", include_str!("../../../tests/data/anchor/client.py.txt")),
    ("src/demo.go", include_str!("../../../tests/data/anchor/demo.go.txt")),
    ("src/extension.ts", include_str!("../../../tests/data/anchor/extension.ts.txt")),
    ("src/table.rs", include_str!("../../../tests/data/anchor/table.rs.txt")),
];

/// Histories; the number of each is its seed.
const HISTORIES: u64 = 240;

/// How lines came out.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    exact: usize,
    shifted: usize,
    uncertain: usize,
    /// Uncertain, and right.
    uncertain_right: usize,
    gone: usize,
    /// Text that survived.
    survived: usize,
}

/// A text that was measured, and what became of it, step by step.
pub struct History {
    pub measured: File,
    /// Later states; the last is today's.
    pub later: Vec<File>,
    pub kinds: Vec<&'static str>,
}

/// A history: edits, and now and then a switch to another branch or back.
pub fn history(seed: u64) -> History {
    let mut editor = Editor::new(seed);
    let (path, text) = FILES[editor.dice.below(FILES.len())];
    let mut file = editor.open(path, text);
    let mut kinds = Vec::new();
    // What was there before anything was measured.
    for _ in 0..editor.dice.below(6) {
        editor.edit(&mut file);
    }
    let fork = file.clone();
    for _ in 0..editor.dice.below(4) {
        editor.edit(&mut file);
    }
    let measured = file.clone();
    let mut later = Vec::new();
    if editor.dice.below(4) == 0 {
        // Another branch is checked out.
        file = fork;
        kinds.push("branch");
        later.push(file.clone());
    }
    for _ in 0..=editor.dice.below(20) {
        kinds.push(editor.edit(&mut file));
        later.push(file.clone());
    }
    if editor.dice.below(12) == 0 {
        // Everything is taken back.
        kinds.push("back");
        later.push(measured.clone());
    }
    History { measured, later, kinds }
}

/// What is wrong with a map, in words.
fn faults(measured: &File, today: &File, map: &LineMap, tally: &mut Tally) -> Vec<String> {
    let place: HashMap<u64, usize> = today.lines.iter().enumerate().map(|(at, line)| (line.id, at)).collect();
    let mut faults = Vec::new();
    for (at, line) in measured.lines.iter().enumerate() {
        let number = u32::try_from(at + 1).unwrap();
        let mapped = map.get(number);
        let truth = place.get(&line.id).map(|&at| u32::try_from(at + 1).unwrap());
        tally.survived += usize::from(truth.is_some());
        match mapped.fate {
            Fate::Exact | Fate::Shifted => {
                if mapped.fate == Fate::Exact {
                    tally.exact += 1;
                    assert_eq!(mapped.line, number, "exact means the same number");
                } else {
                    tally.shifted += 1;
                }
                let now = &today.lines[mapped.line as usize - 1];
                // Where a line is gone and a copy of it is left, that is it, as after a move.
                let is_heir = truth.is_none() && now.ancestors.contains(&line.id);
                if truth != Some(mapped.line) && !is_heir {
                    faults.push(format!("line {number} is {truth:?}, not {}: {:?}", mapped.line, line.text));
                }
            }
            Fate::Uncertain(_) => {
                tally.uncertain += 1;
                tally.uncertain_right += usize::from(truth == Some(mapped.line));
                assert!(mapped.line > 0 && mapped.line as usize <= today.lines.len(), "an uncertain line is somewhere");
            }
            Fate::Gone => {
                tally.gone += 1;
                if let Some(truth) = truth {
                    faults.push(format!("line {number} is {truth}, not gone: {:?}", line.text));
                }
            }
        }
    }
    faults
}

#[test]
fn no_line_is_wrong_without_a_mark() {
    let mut tally = Tally::default();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut report = String::new();
    for seed in 0..HISTORIES {
        let history = history(seed);
        history.kinds.iter().for_each(|kind| *kinds.entry(kind).or_default() += 1);
        let today = history.later.last().unwrap();
        let map = LineMap::between(&history.measured.text(), &today.text());
        for fault in faults(&history.measured, today, &map, &mut tally) {
            let _ = writeln!(report, "history {seed} ({}): {fault}", history.kinds.join(", "));
        }
        // Step by step is right as well.
        let mut chain: Option<LineMap> = None;
        let mut before = &history.measured;
        for state in &history.later {
            let step = LineMap::between(&before.text(), &state.text());
            chain = Some(chain.map_or_else(|| step.clone(), |chain| chain.then(&step)));
            before = state;
        }
        let mut of_chain = Tally::default();
        for fault in faults(&history.measured, today, &chain.unwrap(), &mut of_chain) {
            // What was gone for a while stays gone on this way.
            if !fault.contains("not gone") {
                let _ = writeln!(report, "history {seed}, step by step ({}): {fault}", history.kinds.join(", "));
            }
        }
    }
    println!("{HISTORIES} histories: {tally:?}; edits: {kinds:?}");
    assert!(report.is_empty(), "{report}");
    // A map that is sure of nothing would be right as well.
    let certain = tally.exact + tally.shifted;
    assert!(certain * 10 > tally.survived * 8, "of {} lines that survived {certain} are certain", tally.survived);
}

#[test]
fn blame_agrees_where_both_are_sure() {
    let (mut same, mut unsure, mut blame_wrong, mut lost) = (0, 0, 0, 0);
    for seed in 0..HISTORIES {
        let history = history(seed);
        let today = history.later.last().unwrap();
        let map = LineMap::between(&history.measured.text(), &today.text());
        let back: HashMap<u32, u32> = map
            .iter()
            .filter(|(_, mapped)| matches!(mapped.fate, Fate::Exact | Fate::Shifted))
            .map(|(from, mapped)| (mapped.line, from))
            .collect();
        let marked: HashMap<u32, u32> =
            map.iter().filter(|(_, mapped)| mapped.line > 0).map(|(from, mapped)| (from, mapped.line)).collect();
        for (now, from) in blame::lines(&history) {
            let (old, new) = (&history.measured.lines[from as usize - 1], &today.lines[now as usize - 1]);
            let is_true = old.id == new.id || new.ancestors.contains(&old.id);
            match back.get(&now) {
                Some(&ours) if ours == from => same += 1,
                Some(&ours) if history.measured.lines[ours as usize - 1].id == new.id => blame_wrong += 1,
                _ if !is_true => blame_wrong += 1,
                Some(&ours) => panic!("history {seed}: line {now} was {from} for blame, {ours} for us"),
                None if marked.contains_key(&from) => unsure += 1,
                // Copies: the one line is where it was, and blame tells of the other.
                None => lost += 1,
            }
        }
    }
    println!("blame: {same} the same, {unsure} marked or elsewhere, {lost} without, blame wrong at {blame_wrong}");
    assert!(same > 50_000, "{same}");
    assert_eq!(lost, 0, "lines that blame still tracks and that are gone for us");
}

#[test]
fn a_renamed_file_is_found_or_none_is() {
    let mut found = 0;
    let mut missed = 0;
    for seed in 0..HISTORIES {
        let history = history(seed);
        let today = history.later.last().unwrap();
        let mut decoys = Editor::new(seed + 10_000);
        let mut renames = Renames::of(&history.measured.text());
        for (number, (path, text)) in FILES.iter().enumerate() {
            // A file of the same origin would be a copy of it.
            if !history.later.iter().chain([&history.measured]).any(|file| file.path == *path)
                && !text.lines().take(3).eq(original(&history).lines().take(3))
            {
                let mut decoy = decoys.open(path, text);
                decoys.edit(&mut decoy);
                renames.offer(number, &decoy.text());
            }
        }
        renames.offer(100, &today.text());
        match renames.found() {
            Some(100) => found += 1,
            Some(other) => panic!("history {seed}: took {other} for {}", history.measured.path),
            None => missed += 1,
        }
    }
    println!("{found} found, {missed} not");
    assert!(found > missed * 10, "{found} found, {missed} not");
}

/// The file a history began with.
fn original(history: &History) -> &'static str {
    let ids = everyone(&history.measured);
    let shared = |text: &str| {
        let lines: std::collections::HashSet<&str> = text.lines().collect();
        history.measured.lines.iter().filter(|line| ids.contains(&line.id) && lines.contains(&*line.text)).count()
    };
    FILES.iter().max_by_key(|(_, text)| shared(text)).map_or("", |(_, text)| text)
}
