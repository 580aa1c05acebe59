use profiler_core::decode::DecodeErrorKind;

use crate::{assert_note, bytes, functions, json, lines, oracle, profile, read, text};

#[test]
fn py_spy_reads_like_the_independent_reader_says() {
    let profile = profile(bytes("made/python/py-spy.raw.txt"));
    let expected = json("made/oracle/py-spy.raw.txt.json");
    assert_eq!(profile.format(), "folded");
    assert_eq!(profile.value_types()[0].to_string(), "samples/count");
    assert_eq!(profile.samples().len() as u64, expected["stacks"].as_u64().unwrap());
    assert_eq!(profile.sum(0).total, expected["total"].as_i64().unwrap());
    assert_eq!(lines(&profile, 0), oracle(&expected["lines"], 1.0));
    assert_eq!(functions(&profile, 0), oracle(&expected["functions"], 1.0));
    assert_eq!(profile.notes(), [""; 0]);
}

#[test]
fn lines_that_are_no_stacks_are_left_out_and_counted() {
    let profile = profile("# interval: 100\n# mode: cpu\nmain;a 3\nmain;b c 4\nno count here\nmain 5\n");
    assert_eq!(profile.sum(0).total, 12);
    assert_eq!(functions(&profile, 0)["b c"], (4, 4));
    assert_note(&profile, "lines left out because they are no stacks: 1, the first is line 5");
}

#[test]
fn encodings_and_line_ends_do_not_matter() {
    let plain = "main;größe 3\nmain;b 4\n";
    let utf16 = |unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xfeff).chain(plain.replace('\n', "\r\n").encode_utf16()).flat_map(unit).collect()
    };
    let with_mark = [b"\xef\xbb\xbf", plain.as_bytes()].concat();
    for file in [plain.as_bytes().to_vec(), utf16(u16::to_le_bytes), utf16(u16::to_be_bytes), with_mark] {
        let profile = profile(file);
        assert_eq!(functions(&profile, 0)["größe"], (3, 3));
        assert_eq!(functions(&profile, 0)["main"], (0, 7));
        assert_eq!(profile.notes(), [""; 0]);
    }
}

#[test]
fn kinds_of_frames_are_not_part_of_their_names() {
    let profile = profile("java;A.f_[j];A.g_[i];sys_read_[k] 2\njava;A.f_[0];A.g_[1] 3\n");
    let functions = functions(&profile, 0);
    assert_eq!(functions["A.f"], (0, 5));
    assert_eq!(functions["A.g"], (3, 5));
    assert_eq!(functions["sys_read"], (2, 2));
}

#[test]
fn counts_that_are_fractions_are_rounded_and_the_change_is_told() {
    let profile = profile("a;b 1.5\na;c -2.5\na;d 1e2\na;e 0.25\n");
    let values = profile.samples().values(0);
    assert_eq!(values, [2, -3, 100, 0]);
    assert_note(&profile, "values rounded to whole numbers: 3, which changed their sum by -0.250");
}

#[test]
fn other_text_is_not_taken_for_stacks() {
    for file in [
        text("public/oracle/java.cpu.pprof-raw.txt"),
        text("go/profiles/goroutine.debug2.txt"),
        include_str!("folded.rs").to_owned(),
        include_str!("../../Cargo.toml").to_owned(),
        "name;value\na;1\nb;2\n".to_owned(),
        "name,value\na b,1\nb c,2\n".to_owned(),
        "fn=(1) main\n10 5\n11 7\ncalls=1 20\n12 100\n".to_owned(),
        "Dear all,\nI have 5\nthings; and then some.\nBye\n".to_owned(),
        "{\"a\": 1,\n\"b\": 2 }\n".to_owned(),
        "int main(void) {\n  int x = 1;\n  return 0;\n}\n".to_owned(),
    ] {
        let found = read(&file);
        assert_eq!(found.err().map(|error| error.kind()), Some(DecodeErrorKind::NotAProfile), "{file}");
    }
}

#[test]
fn samples_without_frames_are_samples_without_a_stack() {
    let profile = profile("main (a.py:3);work (a.py:7) 5\n 3\nmain (a.py:3) 2\n");
    assert_eq!(profile.sum(0).total, 10);
    assert_eq!(profile.samples().stack(1).len(), 0);
    assert_eq!(profile.notes(), [""; 0]);
}
