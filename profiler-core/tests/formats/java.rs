//! Flight recordings of the JVM.

use std::collections::BTreeMap;

use profiler_core::decode::DecodeErrorKind;

use crate::{assert_note, bytes, labels, lines, profile, read, types};

/// The whole file, not compressed.
pub(crate) fn recording() -> Vec<u8> {
    let mut plain = Vec::new();
    let file = bytes("public/FastSlow.jfr.gz");
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&file[..]), &mut plain).unwrap();
    plain
}

/// A chunk for tests that break it: one method, one stack, one sample.
#[expect(clippy::too_many_lines, reason = "it is one file, from its first byte to its last")]
pub(crate) fn small() -> Vec<u8> {
    let number = |value: u32| -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = value;
        while rest >= 0x80 {
            out.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
            rest >>= 7;
        }
        out.push(u8::try_from(rest).unwrap());
        out
    };
    // Sizes take two bytes, so that they can be known before.
    let event = |body: Vec<u8>| -> Vec<u8> {
        let size = u32::try_from(body.len() + 2).unwrap();
        [vec![u8::try_from(size & 0x7f).unwrap() | 0x80, u8::try_from(size >> 7).unwrap()], body].concat()
    };
    let words = [
        "",
        "root",
        "metadata",
        "class",
        "field",
        "id",
        "name",
        "constantPool",
        "dimension",
        "true",
        "1",
        "int",
        "long",
        "java.lang.String",
        "jdk.types.Symbol",
        "java.lang.Class",
        "jdk.types.Method",
        "jdk.types.StackFrame",
        "jdk.types.StackTrace",
        "jdk.ExecutionSample",
        "string",
        "type",
        "method",
        "lineNumber",
        "frames",
        "stackTrace",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
    ];
    let word = |text: &str| number(u32::try_from(words.iter().position(|known| *known == text).unwrap()).unwrap());
    let element = |name: &str, attributes: &[(&str, &str)], children: &[Vec<u8>]| -> Vec<u8> {
        let mut out = [word(name), number(u32::try_from(attributes.len()).unwrap())].concat();
        for (key, value) in attributes {
            out.extend([word(key), word(value)].concat());
        }
        out.extend(number(u32::try_from(children.len()).unwrap()));
        out.extend(children.concat());
        out
    };
    let field = |name: &str, class: &str, more: &[(&str, &str)]| {
        element("field", &[&[("name", name), ("class", class)], more].concat(), &[])
    };
    let pooled = [("constantPool", "true")];
    let class = |name: &str, id: &str, fields: &[Vec<u8>]| element("class", &[("name", name), ("id", id)], fields);
    let classes = [
        class("int", "1", &[]),
        class("java.lang.String", "2", &[]),
        class("jdk.types.Symbol", "3", &[field("string", "2", &[])]),
        class("java.lang.Class", "4", &[field("name", "3", &pooled)]),
        class("jdk.types.Method", "5", &[field("type", "4", &pooled), field("name", "3", &pooled)]),
        class("jdk.types.StackFrame", "6", &[field("method", "5", &pooled), field("lineNumber", "1", &[])]),
        class("jdk.types.StackTrace", "7", &[field("frames", "6", &[("dimension", "1")])]),
        class("jdk.ExecutionSample", "8", &[field("stackTrace", "7", &pooled)]),
    ];
    let tree = element("root", &[], &[element("metadata", &[], &classes)]);
    let mut description = vec![0, 0, 0, 1];
    description.extend(number(u32::try_from(words.len()).unwrap()));
    for text in words {
        description.extend([&[3, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat());
    }
    description.extend(tree);
    let symbol = |key: u8, text: &str| [&[key, 3, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let pools = [
        vec![1, 0, 0, 0, 0, 4],
        [vec![3, 2], symbol(1, "Main"), symbol(2, "run")].concat(),
        vec![4, 1, 1, 1],
        vec![5, 1, 1, 1, 2],
        vec![7, 1, 1, 2, 1, 7, 1, 9],
    ]
    .concat();
    let sample = event(vec![8, 1]);
    let mut chunk = b"FLR\0\0\x02\0\0".to_vec();
    let body = [event(description), event(pools), sample].concat();
    let long = |value: usize| u64::try_from(value).unwrap().to_be_bytes();
    for value in [68 + body.len(), 0, 68, 1_000, 2_000, 0, 1_000_000_000] {
        chunk.extend(long(value));
    }
    chunk.extend(1u32.to_be_bytes());
    chunk.extend(body);
    chunk
}

#[test]
fn a_recording_made_by_hand_is_read() {
    let profile = profile(small());
    assert_eq!(
        lines(&profile, 0),
        crate::Costs::from([("Main.java:7".into(), (1, 1)), ("Main.java:9".into(), (0, 1))])
    );
    assert_eq!(crate::functions(&profile, 0)["Main.run"], (1, 1));
}

#[test]
fn a_recording_of_several_chunks_reads_like_another_reader_says() {
    let profile = profile(bytes("public/FastSlow.jfr.gz"));
    assert_eq!(types(&profile), ["samples/count", "alloc_space/bytes"]);
    assert_eq!(profile.sum(0).total, 1012);
    let ours = lines(&profile, 0);
    assert_eq!(ours["FastSlow.java:4"].0, 572);
    assert_eq!(ours["FastSlow.java:7"].0, 427);
    assert_eq!(profile.value_types()[profile.meta().default_value_type].to_string(), "samples/count");
    assert!(profile.meta().period > 0, "{:?}", profile.meta());
    assert!(profile.meta().duration_ns.is_some_and(|ns| ns > 1_000_000_000));
    assert!(labels(&profile, 0).iter().any(|label| label.starts_with("thread=")), "{:?}", labels(&profile, 0));
}

/// Every leaf of the oracle: `(("Class.method", line), count)`.
#[test]
fn each_leaf_is_that_of_the_other_reader() {
    let profile = profile(bytes("public/FastSlow.jfr.gz"));
    let mut leaves: BTreeMap<(String, u32), i64> = BTreeMap::new();
    for sample in 0..profile.samples().len() {
        let value = profile.samples().values(0)[sample];
        let Some(line) =
            profile.samples().stack(sample).first().and_then(|leaf| profile.locations().lines(*leaf).first())
        else {
            continue;
        };
        let name = profile.text(profile.function(line.function).name).to_owned();
        *leaves.entry((name, line.line.0)).or_default() += value;
    }
    let mut compared = 0;
    for row in crate::text("public/oracle/FastSlow.jfr.txt").lines().filter_map(|row| row.trim().strip_prefix("((\"")) {
        let (name, rest) = row.split_once("\", ").unwrap();
        let (line, count) = rest.trim_end_matches(')').split_once("), ").unwrap();
        let name = name.replace('/', ".");
        let name = name.strip_prefix('.').unwrap_or(&name).to_owned();
        let key = (name, line.parse().unwrap());
        assert_eq!(leaves.get(&key), Some(&count.parse().unwrap()), "{key:?}");
        compared += 1;
    }
    assert!(compared >= 10);
}

#[test]
fn a_recording_that_ends_in_a_chunk_keeps_the_chunks_before() {
    let whole = recording();
    let cut = profile(&whole[..whole.len() / 2]);
    assert!(!cut.samples().is_empty() && cut.samples().len() < profile(&whole).samples().len());
    assert_note(&cut, "the file is incomplete");
    assert_eq!(read(&whole[..60]).unwrap_err().kind(), DecodeErrorKind::Truncated);
}

#[test]
fn other_versions_are_refused() {
    let mut newer = recording();
    newer[5] = 9;
    assert_eq!(read(newer).unwrap_err().kind(), DecodeErrorKind::Unsupported);
}
