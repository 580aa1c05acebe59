//! A small language for profiles, so that a test shows the stacks it is about, and nothing else.
//!
//! ```text
//! samples/count cpu/nanoseconds                      value types; the first line
//! !period cpu/nanoseconds 10000000                   settings, see below
//! # a comment
//! src/main.rs:10 main; src/lib.rs:4 work = 3, 30     one sample, ROOT FIRST, leaf last
//! src/main.rs:11 main = 1, 10 {thread=worker, size=48 bytes}
//! //- /src/main.rs                                   files of the workspace
//! fn main() {
//! ```
//!
//! A **sample** is `frame; frame; … = value, value {labels}`, one value per value type. No
//! frame at all is an empty stack: `= 5`. In values `_` is ignored.
//!
//! A **frame** is `[place] PATH:LINE NAME [#START]`:
//! * `PATH` ends at the first space; with spaces, or empty, it is quoted: `"a b.rs":10 f`;
//! * `?` for the path, the line or the name means that the profile doesn't say it;
//!   `:LINE` may be left out too. A line is any `i64`;
//! * `#8` says that the function starts on line 8;
//! * `outer > inner` is a call of `inner` that was inlined: one location with two lines;
//! * the place is `0x1f00` or `libc.so@0x1f00`, the address and its binary. Alone it is a
//!   frame without symbols. A binary covers 1 GiB of its own; addresses are as written.
//!
//! **Labels** are `key=text`, or `key=48` and `key=48 bytes` for numbers; `key="48"` is text.
//!
//! **Settings**: `!period TYPE/UNIT N`, `!time NS`, `!duration NS`, `!default TYPE`,
//! `!drop REGEX`, `!keep REGEX`, `!comment TEXT`.
//!
//! What is not here: odd encodings, dangling ids, broken messages. Those are made with
//! [`pprof`], starting from [`Mini::profile`].

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::pprof::{self, Builder, Label, Line, Profile};

/// A profile in the small language, and the files of its workspace.
#[derive(Clone, Debug)]
pub struct Mini {
    /// The profile.
    pub profile: Profile,
    /// Files of the workspace: path below its root, text.
    pub files: Vec<(String, String)>,
}

impl Mini {
    /// Reads the small language.
    ///
    /// ```
    /// use perflens_tests::mini::Mini;
    /// let mini = Mini::parse("
    ///     cpu/nanoseconds
    ///     src/main.rs:10 main; src/lib.rs:4 work > src/lib.rs:9 inlined = 30
    /// ");
    /// let sample = &mini.profile.sample[0];
    /// assert_eq!(sample.value, [30]);
    /// assert_eq!(sample.location_id, [2, 1], "leaf first, as pprof wants it");
    /// assert_eq!(mini.profile.location[1].line[0].line, 9, "innermost first");
    /// ```
    ///
    /// # Panics
    /// With the line that can't be read.
    pub fn parse(text: &str) -> Self {
        let (profile, files) = text.split_once("//- ").map_or((text, ""), |(profile, _)| {
            let start = profile.len();
            (profile, &text[start..])
        });
        Self { profile: parse_profile(profile), files: parse_files(files) }
    }

    /// The profile as a raw pprof file.
    pub fn raw(&self) -> Vec<u8> {
        pprof::raw(&self.profile)
    }

    /// The profile as a gzipped pprof file, which is what most tools write.
    pub fn gzip(&self) -> Vec<u8> {
        pprof::gzip(&self.raw())
    }

    /// A new folder with the workspace's files.
    pub fn workspace(&self) -> TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (path, text) in &self.files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it is below the folder")).expect("creating a folder");
            fs::write(path, text).expect("writing a file");
        }
        folder
    }

    /// Writes the profile, gzipped, into a folder.
    pub fn write_to(&self, path: &Path) {
        fs::write(path, self.gzip()).expect("writing the profile");
    }
}

fn parse_files(text: &str) -> Vec<(String, String)> {
    text.split("//- ")
        .skip(1)
        .map(|part| {
            let (path, text) = part.split_once('\n').unwrap_or((part, ""));
            (path.trim().trim_start_matches('/').to_owned(), text.to_owned())
        })
        .collect()
}

fn parse_profile(text: &str) -> Profile {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let header = lines.next().expect("the first line names the value types");
    let value_types: Vec<(&str, &str)> = header.split_whitespace().map(kind_and_unit).collect();
    let mut builder = Builder::new(&value_types);
    for line in lines {
        if let Some(setting) = line.strip_prefix('!') {
            set(&mut builder, setting);
        } else {
            sample(&mut builder, line, value_types.len());
        }
    }
    builder.profile
}

fn kind_and_unit(word: &str) -> (&str, &str) {
    word.split_once('/').unwrap_or_else(|| panic!("`{word}` is not TYPE/UNIT"))
}

fn set(builder: &mut Builder, setting: &str) {
    let (key, value) = setting.split_once(' ').unwrap_or((setting, ""));
    let number = |text: &str| parse_number(text).unwrap_or_else(|| panic!("`!{setting}`: `{text}` is no number"));
    match key {
        "period" => {
            let (value_type, period) = value.split_once(' ').expect("`!period TYPE/UNIT N`");
            let (kind, unit) = kind_and_unit(value_type);
            builder.profile.period_type = Some(builder.value_type(kind, unit));
            builder.profile.period = number(period);
        }
        "time" => builder.profile.time_nanos = number(value),
        "duration" => builder.profile.duration_nanos = number(value),
        "default" => builder.profile.default_sample_type = builder.string(value),
        "drop" => builder.profile.drop_frames = builder.string(value),
        "keep" => builder.profile.keep_frames = builder.string(value),
        "comment" => {
            let comment = builder.string(value);
            builder.profile.comment.push(comment);
        }
        _ => panic!("unknown setting `!{setting}`"),
    }
}

fn sample(builder: &mut Builder, line: &str, value_count: usize) {
    let at =
        if line.starts_with('=') { 0 } else { line.find(" = ").unwrap_or_else(|| panic!("`{line}` has no ` = `")) };
    let (stack, values) = (&line[..at], line[at..].trim_start_matches([' ', '=']));
    let (values, labels) = values.split_once('{').map_or((values, ""), |(values, labels)| {
        (values, labels.strip_suffix('}').unwrap_or_else(|| panic!("`{line}`: labels end with `}}`")))
    });
    let values: Vec<i64> = values
        .split(',')
        .map(|value| parse_number(value).unwrap_or_else(|| panic!("`{line}`: `{value}` is no value")))
        .collect();
    assert_eq!(values.len(), value_count, "`{line}`: one value per value type");

    let mut stack: Vec<u64> =
        stack.split(';').map(str::trim).filter(|f| !f.is_empty()).map(|f| location(builder, f)).collect();
    stack.reverse();
    let labels: Vec<Label> =
        labels.split(',').map(str::trim).filter(|l| !l.is_empty()).map(|l| label(builder, l)).collect();
    builder.sample(&stack, &values).label = labels;
}

fn label(builder: &mut Builder, text: &str) -> Label {
    let (key, value) = text.split_once('=').unwrap_or_else(|| panic!("`{text}` is not key=value"));
    if let Some(quoted) = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) {
        return builder.text_label(key, quoted);
    }
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    match parse_number(number) {
        Some(number) => builder.number_label(key, number, unit),
        None => builder.text_label(key, value),
    }
}

fn location(builder: &mut Builder, frame: &str) -> u64 {
    let (place, rest) = frame.split_once(' ').unwrap_or((frame, ""));
    let (mapping, address, lines) = match parse_place(place) {
        Some((binary, address)) => {
            let mapping = if binary.is_empty() { 0 } else { builder.mapping(binary) };
            (mapping, address, rest.trim())
        }
        None => (0, 0, frame),
    };
    let mut lines: Vec<Line> =
        lines.split(" > ").filter(|line| !line.is_empty()).map(|line| source_line(builder, line)).collect();
    lines.reverse();
    builder.location(mapping, address, &lines)
}

/// `0x1f00` or `libc.so@0x1f00`.
fn parse_place(word: &str) -> Option<(&str, u64)> {
    let (binary, address) = word.split_once('@').unwrap_or(("", word));
    Some((binary, u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?))
}

fn source_line(builder: &mut Builder, text: &str) -> Line {
    let text = text.trim();
    let (path, rest) = if let Some(quoted) = text.strip_prefix('"') {
        quoted.split_once('"').unwrap_or_else(|| panic!("`{text}`: the quote isn't closed"))
    } else {
        let word = text.split(' ').next().unwrap_or_default();
        // The last colon of the word that a line follows; `C:/a.rs` has another one.
        let path = match word.rsplit_once(':') {
            Some((path, line)) if line == "?" || parse_number(line).is_some() => path,
            _ => word,
        };
        text.split_at(path.len())
    };
    let (line, name) = match rest.strip_prefix(':') {
        Some(rest) => rest.split_once(' ').unwrap_or((rest, "?")),
        None => ("?", rest.trim()),
    };
    let (name, start_line) = match name.rsplit_once(" #") {
        Some((name, start)) if parse_number(start).is_some() => (name, parse_number(start).unwrap_or_default()),
        _ => (name, 0),
    };
    let known = |text: &'_ str| if text == "?" { String::new() } else { text.to_owned() };
    let line = match line {
        "?" => 0,
        _ => parse_number(line).unwrap_or_else(|| panic!("`{text}`: `{line}` is no line number")),
    };
    let function_id = builder.function(&known(name.trim()), &known(path), start_line);
    Line { function_id, line, column: 0 }
}

fn parse_number(text: &str) -> Option<i64> {
    text.trim().replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line per sample, leaf first: `file:line name` of each location.
    fn dump(mini: &Mini) -> Vec<String> {
        let profile = &mini.profile;
        let text =
            |index: i64| String::from_utf8(profile.string_table[usize::try_from(index).unwrap()].clone()).unwrap();
        let location = |id: &u64| {
            let location = &profile.location[usize::try_from(*id).unwrap() - 1];
            let lines = location.line.iter().map(|line| {
                let function = &profile.function[usize::try_from(line.function_id).unwrap() - 1];
                let (file, name) = (text(function.filename), text(function.name));
                format!("[{file}]:{} [{name}] #{}", line.line, function.start_line)
            });
            format!("{}@{:x} {}", location.mapping_id, location.address, lines.collect::<Vec<_>>().join(" < "))
        };
        profile
            .sample
            .iter()
            .map(|sample| {
                let stack: Vec<String> = sample.location_id.iter().map(location).collect();
                let labels: Vec<String> = sample
                    .label
                    .iter()
                    .map(|l| format!("{}={}{}{}", text(l.key), text(l.str), l.num, text(l.num_unit)))
                    .collect();
                format!("{} = {:?} {labels:?}", stack.join("; "), sample.value)
            })
            .collect()
    }

    #[test]
    fn every_form_of_a_frame_and_of_a_label() {
        let mini = Mini::parse(
            r#"
            a/count b/ns
            # comment
            src/main.rs:10 main #8; C:/x/a.rs:-1 <A as B>::f > b.rs:7 g = 1_000, -2 {k=text, n=48, m=48 bytes, t="48"}
            "a b.rs":3 f; ?:5 ?; a.rs operator int; a.rs:? h; "":1 i; ? j = 1, 2
            0x1f; libc.so@0x20; app@0x30 a.rs:1 k = 3, 4
            = 5, 6
            "#,
        );
        assert_eq!(
            dump(&mini),
            [
                "0@0 [b.rs]:7 [g] #0 < [C:/x/a.rs]:-1 [<A as B>::f] #0; 0@0 [src/main.rs]:10 [main] #8 = [1000, -2] \
                 [\"k=text0\", \"n=48\", \"m=48bytes\", \"t=480\"]",
                "0@0 []:0 [j] #0; 0@0 []:1 [i] #0; 0@0 [a.rs]:0 [h] #0; 0@0 [a.rs]:0 [operator int] #0; 0@0 []:5 [] #0; \
                 0@0 [a b.rs]:3 [f] #0 = [1, 2] []",
                "2@30 [a.rs]:1 [k] #0; 1@20 ; 0@1f  = [3, 4] []",
                " = [5, 6] []",
            ]
        );
    }

    #[test]
    fn settings_and_files() {
        let mini = Mini::parse(
            "cpu/ns\n!period cpu/ns 10\n!time 7\n!duration 8\n!default cpu\n!drop a.*\n!keep ab\n!comment hi there\n\
             //- /src/a.rs\nfn a() {}\n//- b.rs\n\nx\n",
        );
        let profile = &mini.profile;
        assert_eq!((profile.period, profile.time_nanos, profile.duration_nanos), (10, 7, 8));
        let text = |index: i64| &*profile.string_table[usize::try_from(index).unwrap()];
        assert_eq!(text(profile.default_sample_type), b"cpu");
        assert_eq!((text(profile.drop_frames), text(profile.keep_frames)), (&b"a.*"[..], &b"ab"[..]));
        assert_eq!(text(profile.comment[0]), b"hi there");
        let folder = mini.workspace();
        assert_eq!(fs::read_to_string(folder.path().join("src/a.rs")).unwrap(), "fn a() {}\n");
        assert_eq!(fs::read_to_string(folder.path().join("b.rs")).unwrap(), "\nx\n");
    }
}
