//! Whatever the values are, nothing is wider than it may be.

use profiler_core::attribute::GroupId;
use profiler_core::attribute::calls::{Calls, Neighbour};
use profiler_core::profile::Profile;
use profiler_core::view::hint::{Settings, change_hints, hints};
use profiler_core::view::hover::{self, Context, MAX_LINES, Subject, hover};
use profiler_core::view::label::{Glyphs, MAX_COLUMNS, Style};
use proptest::prelude::*;
use std::sync::Arc;
use unicode_width::UnicodeWidthStr;

use profiler_core::profile::{Line, LineNo, MapId, ProfileBuilder, ValueType};

use crate::profiles::{CPU, Changed, Loaded};

/// Values of every order of magnitude, of either sign.
fn any_value() -> impl Strategy<Value = i64> {
    (0..62_u32, any::<i64>()).prop_map(|(shift, bits)| (bits >> 3) >> shift)
}

/// Functions of one line, each called by the one before.
fn any_profile() -> impl Strategy<Value = Arc<Profile>> {
    (proptest::collection::vec((any_value(), any_value(), 1..20_u32), 1..6), 0..i64::MAX).prop_map(|(rows, period)| {
        let unit = if period % 2 == 0 { "nanoseconds" } else { "bytes" };
        let types = vec![ValueType::new("samples", "count"), ValueType::new("cpu", unit)];
        let mut builder = ProfileBuilder::new("test", types);
        builder.meta().period = period;
        builder.meta().period_type = Some(ValueType::new("cpu", "nanoseconds"));
        let mut caller = None;
        for (a, b, line) in rows {
            let function = builder.function(&format!("f{line}"), "", "src/a.rs", LineNo(line)).unwrap();
            let place = builder.location(MapId::NONE, 0, &[Line { function, line: LineNo(line), column: 0 }]).unwrap();
            let stack: Vec<_> = [place].into_iter().chain(caller).collect();
            builder.push_sample(&stack, &[a, b], &[]).unwrap();
            caller = Some(place);
        }
        Arc::new(builder.finish().unwrap())
    })
}

fn styles() -> impl Iterator<Item = Style> {
    [Glyphs::Unicode, Glyphs::Ascii]
        .into_iter()
        .flat_map(|glyphs| [true, false].map(|has_lead| Style { glyphs, has_lead }))
}

proptest! {
    #[test]
    fn labels_fit(new in any_profile(), base in any_profile()) {
        for style in styles() {
            let settings = Settings { min_basis_points: 0, style, ..Settings::default() };
            let mut labels = Vec::new();
            for value_type in [0, CPU] {
                let loaded = Loaded::new(&new, value_type);
                labels.extend(hints(loaded.file("src/a.rs"), 1..=u32::MAX, &settings));
            }
            if new.value_types() == base.value_types() {
                let changed = Changed::new(&new, &base);
                labels.extend(change_hints(changed.file("src/a.rs"), 1..=u32::MAX, &settings));
            }
            for hint in labels {
                prop_assert!(hint.label.width() <= MAX_COLUMNS, "{:?}", hint.label);
                prop_assert!(!hint.label.trim().is_empty());
                let is_ascii = hint.label.trim_start_matches('\u{a0}').is_ascii();
                prop_assert!(is_ascii || style.glyphs == Glyphs::Unicode, "{:?}", hint.label);
            }
        }
    }

    #[test]
    fn hovers_fit(new in any_profile(), names in proptest::collection::vec("\\PC{1,60}", 6)) {
        let loaded = Loaded::new(&new, CPU);
        let file = loaded.file("src/a.rs");
        let neighbour = |(at, name): (usize, &String)| Neighbour {
            name: name.clone(),
            file: if at % 2 == 0 { file.file } else { GroupId::NONE },
            start_line: LineNo(1),
            line: LineNo(u32::MAX >> at),
            value: -(i64::MAX >> (at * 9)),
        };
        let all: Vec<Neighbour> = names.iter().enumerate().map(neighbour).collect();
        let calls = Calls { callers: all.clone(), callees: all, ..Calls::default() };
        let others = [(0, &loaded.analysis.costs), (0, &loaded.analysis.costs), (0, &loaded.analysis.costs)];
        for row in file.all_lines() {
            let context = Context { others: &others, calls: Some(&calls), ..Context::default() };
            let hover = hover(file, Subject::Line(row.line.0), &context).unwrap();
            prop_assert!(hover.table.lines().count() <= MAX_LINES);
            for line in hover.table.lines() {
                prop_assert!(line.width() <= hover::MAX_COLUMNS, "{line:?}");
            }
        }
    }
}
