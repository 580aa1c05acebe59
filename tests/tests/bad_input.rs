//! What no one meant to be read: broken, hostile and wrong files. The program says in one
//! sentence what is wrong, or reads what there is and notes the rest; it does so soon, within
//! bounded memory, and never falls over.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use perflens_tests::cli::{Output, Run, binary};
use perflens_tests::mini::Mini;
use perflens_tests::pprof::{self, Builder, Line};
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{Limits, decode};
use tempfile::TempDir;

/// Most memory any of these may take, and most time. Both are far above what is needed.
const MEBIBYTES: u64 = 1500;
const DEADLINE: Duration = Duration::from_secs(50);

fn example() -> Mini {
    Mini::parse(
        "
        samples/count cpu/nanoseconds
        !period cpu/nanoseconds 10
        app@0x10 src/main.rs:10 main; libc.so@0x20 = 1, 10 {thread=main, size=48 bytes}
        src/main.rs:10 main > src/lib.rs:4 work = 2, 20
        ",
    )
}

fn run(path: &Path) -> Output {
    Run::report(path).memory(MEBIBYTES).deadline(DEADLINE).output()
}

fn run_bytes(bytes: &[u8]) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("input.bin");
    fs::write(&path, bytes).expect("writing the input");
    run(&path)
}

/// One sentence on standard error, which names the file; nothing on standard output.
fn assert_refused(output: &Output, what: &str) {
    assert_eq!(output.code, Some(1), "{what}: signal {:?}, said {:?}", output.signal, output.stderr);
    assert_eq!(output.stdout, "", "{what}");
    let sentence = output.stderr.trim_end();
    assert_eq!(sentence.lines().count(), 1, "{what}: {sentence}");
    assert!(sentence.len() > 10 && sentence.len() < 400, "{what}: {sentence}");
    assert!(!sentence.contains("panicked") && !sentence.contains("Error {"), "{what}: {sentence}");
}

/// Loaded, with at least one note.
fn assert_noted(output: &Output, what: &str) {
    assert_eq!(output.code, Some(0), "{what}: signal {:?}, said {:?}", output.signal, output.stderr);
    let json: serde_json::Value = serde_json::from_str(&output.stdout).expect("it is JSON");
    let notes = json["profile"]["notes"].as_array().expect("a list");
    assert!(!notes.is_empty(), "{what}: no note says that something is odd");
}

/// Either of both.
fn assert_refused_or_noted(output: &Output, what: &str) {
    match output.code {
        Some(0) => assert_noted(output, what),
        _ => assert_refused(output, what),
    }
}

/// A field with a length, as protobuf writes it.
fn field(number: u8, body: &[u8]) -> Vec<u8> {
    [&[(number << 3) | 2][..], &varint(body.len() as u64), body].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).expect("7 bits") | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).expect("7 bits"));
    out
}

#[test]
fn a_file_cut_at_any_byte_is_refused_or_has_no_more_than_the_whole() {
    let mini = example();
    let total = |bytes: &[u8]| {
        decode(bytes, &Limits::default(), &CancelFlag::default()).map(|profile| {
            let last = profile.value_types().len() - 1;
            profile.sum(last).total
        })
    };
    let raw = mini.raw();
    assert_eq!(total(&raw), Ok(30));
    for cut in 0..raw.len() {
        if let Ok(total) = total(&raw[..cut]) {
            assert!(total <= 30, "cut at {cut}");
        }
    }
    let gzip = mini.gzip();
    for cut in 0..gzip.len() {
        assert!(total(&gzip[..cut]).is_err(), "cut at {cut}: the end of the compressed data is missing");
    }
}

#[test]
fn every_byte_may_be_wrong() {
    let raw = example().raw();
    for at in 0..raw.len() {
        for wrong in [0, 0x80, 0xff, raw[at] ^ 1] {
            let mut bytes = raw.clone();
            bytes[at] = wrong;
            // Any answer is right, but there has to be one.
            let _ = decode(&*bytes, &Limits::default(), &CancelFlag::default());
        }
    }
}

#[test]
fn truncated_files_are_refused_in_one_sentence() {
    let mini = example();
    let (raw, gzip) = (mini.raw(), mini.gzip());
    for cut in [1, 2, 3, 10, 12, gzip.len() / 2, gzip.len() - 9, gzip.len() - 8, gzip.len() - 1] {
        assert_refused(&run_bytes(&gzip[..cut]), &format!("gzip cut at {cut}"));
    }
    // A cut between two fields can't be told from a shorter file; a cut in the samples, which
    // come before the tables of locations and strings, can.
    for cut in [1, 2, 5, 9, raw.len() / 3] {
        assert_refused(&run_bytes(&raw[..cut]), &format!("raw cut at {cut}"));
    }
    assert_refused(&run_bytes(&raw[..raw.len() - 1]), "raw cut in its last field");
    let zstd = ruzstd::encoding::compress_to_vec(&*raw, ruzstd::encoding::CompressionLevel::Fastest);
    for cut in [5, zstd.len() / 2, zstd.len() - 1] {
        let output = run_bytes(&zstd[..cut]);
        assert_refused(&output, &format!("zstd cut at {cut}"));
        assert!(output.stderr.contains("ends inside its compressed data"), "{}", output.stderr);
    }
    let large = pprof::gzip(&Mini::parse(&format!("cpu/ns\n{}", "a.rs:1 f = 1\n".repeat(3_000))).raw());
    assert_refused(&run_bytes(&large[..large.len() - 20]), "large gzip");
}

#[test]
fn files_of_other_kinds_are_refused_in_one_sentence() {
    let program = fs::read(binary()).unwrap();
    let cases: [(&str, &[u8]); 16] = [
        ("empty", b""),
        ("one byte", b"\n"),
        ("ELF", &program),
        ("PNG", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0"),
        ("JSON object", br#"{"hello": "world", "numbers": [1, 2, 3]}"#),
        ("JSON list", b"[]"),
        ("JSON null", b"null"),
        ("HTML", b"<!DOCTYPE html><html><body>401 Unauthorized</body></html>"),
        ("spaces", b"   \n\n  "),
        ("zeros", &[0; 4096]),
        ("ones", &[0xff; 4096]),
        ("UTF-16", b"\xff\xfeh\0e\0l\0l\0o\0"),
        ("zip", b"PK\x03\x04\x14\0\0\0\x08\0"),
        ("gzip of nothing", &pprof::gzip(b"")),
        ("gzip of text", &pprof::gzip(b"Hello, this is a letter, and not a profile.\n")),
        ("gzip of gzip", &pprof::gzip(&example().gzip())),
    ];
    for (what, bytes) in cases {
        assert_refused(&run_bytes(bytes), what);
    }
    let twice = run_bytes(&pprof::gzip(&example().gzip()));
    assert!(twice.stderr.contains("compressed twice"), "{}", twice.stderr);
}

#[test]
fn the_sentence_names_the_file() {
    let output = run_bytes(b"no profile at all\n");
    assert_refused(&output, "text");
    assert!(output.stderr.contains("input.bin"), "{}", output.stderr);
    let base = tempfile::tempdir().unwrap();
    let (good, bad) = (base.path().join("good.pb"), base.path().join("bad.pb"));
    example().write_to(&good);
    fs::write(&bad, b"").unwrap();
    let output = Run::report(&good).arg("--base").arg(&bad).output();
    assert_refused(&output, "base");
    assert!(output.stderr.contains("bad.pb") && !output.stderr.contains("good.pb"), "{}", output.stderr);
}

#[test]
fn huge_lengths_take_no_memory() {
    let huge = varint(1 << 60);
    let most = varint(u64::MAX);
    let value_type = field(1, &[8, 1, 16, 2]);
    let strings = [field(6, b""), field(6, b"cpu"), field(6, b"ns")].concat();
    let start = [value_type, strings].concat();
    for length in [huge, most] {
        for number in 1..=6_u8 {
            let top = [&start[..], &[(number << 3) | 2], &length, b"abc"].concat();
            assert_refused(&run_bytes(&top), &format!("field {number} at the top"));
        }
        // Inside of a sample: packed ids, packed values, a label; inside of a location: a line.
        for (outer, inner) in [(2, 1), (2, 2), (2, 3), (4, 4), (3, 5), (5, 2)] {
            let body = [&[(inner << 3) | 2][..], &length, b"abc"].concat();
            let bytes = [&start[..], &field(outer, &body)].concat();
            assert_refused(&run_bytes(&bytes), &format!("field {inner} in {outer}"));
        }
    }
}

/// 3 GiB in a few megabytes: in many members, in one, and as zeros.
#[test]
fn gzip_bombs_are_stopped() {
    let folder = tempfile::tempdir().unwrap();
    // It begins like a profile and goes on with strings without end.
    let start = [field(1, &[8, 1, 16, 2]), field(6, b""), field(6, b"cpu"), field(6, b"ns")].concat();
    let strings = field(6, &vec![b'x'; 4 << 20]).repeat(16);

    let many = folder.path().join("many.gz");
    let members = pprof::gzip(&strings).repeat(48);
    fs::write(&many, [pprof::gzip(&start), members].concat()).unwrap();

    let one = folder.path().join("one.gz");
    let mut encoder = flate2::write::GzEncoder::new(File::create(&one).unwrap(), flate2::Compression::default());
    encoder.write_all(&start).unwrap();
    for _ in 0..48 {
        encoder.write_all(&strings).unwrap();
    }
    encoder.finish().unwrap();

    let zeros = folder.path().join("zeros.gz");
    fs::write(&zeros, pprof::gzip(&vec![0; 64 << 20]).repeat(48)).unwrap();

    for path in [many, one, zeros] {
        assert!(fs::metadata(&path).unwrap().len() < 16 << 20);
        assert_refused(&run(&path), &path.display().to_string());
    }
}

/// Messages without content cost two bytes in the file; what they cost us is bounded too.
#[test]
fn millions_of_empty_messages_stay_small() {
    let start = [field(1, &[8, 1, 16, 2]), field(6, b""), field(6, b"cpu"), field(6, b"ns")].concat();
    for number in [2, 3, 4, 5, 6, 13] {
        let bytes = [&start[..], &field(number, b"").repeat(2 << 20)].concat();
        let output = run_bytes(&bytes);
        if output.code == Some(0) {
            // Strings and comments may repeat as much as they like.
            if !matches!(number, 6 | 13) {
                assert_noted(&output, &format!("field {number}"));
            }
        } else {
            assert_refused(&output, &format!("field {number}"));
        }
    }
}

#[test]
fn deep_stacks_are_counted() {
    let mut builder = Builder::new(&[("cpu", "nanoseconds")]);
    let stack: Vec<u64> = (0..100_000)
        .map(|i| {
            let function_id = builder.function(&format!("f{i}"), "a.rs", 0);
            builder.location(0, 0, &[Line { function_id, line: i + 1, column: 0 }])
        })
        .collect();
    for _ in 0..3 {
        builder.sample(&stack, &[2]);
    }
    let output = run_bytes(&pprof::gzip(&pprof::raw(&builder.profile)));
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let report: perflens_tests::cli::Report = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report.lines.len(), 100_000);
    assert!(report.lines.iter().all(|row| row.costs.cumulative == 6));
    assert_eq!(report.line("a.rs", 1).costs.flat, 6);
}

#[test]
fn long_texts_are_kept_whole() {
    let long = "x".repeat(5 << 20);
    let mini = Mini::parse(&format!("cpu/ns\n{long}.rs:1 {long} = 1 {{{long}={long}}}"));
    let output = run_bytes(&mini.gzip());
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let report: perflens_tests::cli::Report = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report.functions[0].name.len(), 5 << 20);
}

#[test]
fn invalid_utf8_is_replaced_and_noted() {
    let mut mini = example();
    for text in &mut mini.profile.string_table {
        if text == b"work" || text == b"src/lib.rs" || text == b"thread" {
            text.extend(b"\xff\xc3(\xe2\x82");
        }
    }
    let output = run_bytes(&mini.gzip());
    assert_noted(&output, "invalid UTF-8");
    let report: perflens_tests::cli::Report = serde_json::from_str(&output.stdout).unwrap();
    assert!(report.functions.iter().any(|row| row.name.starts_with("work\u{fffd}")), "{:?}", report.function_costs());
}

#[test]
fn a_million_labels_are_read() {
    let mut mini = Mini::parse("cpu/ns\na.rs:1 f = 1 {k=v}");
    let label = mini.profile.sample[0].label[0];
    mini.profile.sample[0].label = vec![label; 1_000_000];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("labels.pb");
    fs::write(&path, mini.raw()).unwrap();
    let output = Run::report(&path).args(["--filter", "label.k=v"]).memory(MEBIBYTES).deadline(DEADLINE).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

type Spoil = fn(&mut pprof::Profile);

#[test]
fn contradictions_are_refused_or_noted() {
    let cases: [(&str, Spoil); 13] = [
        ("duplicate location ids", |p| p.location[1].id = p.location[0].id),
        ("duplicate function ids", |p| p.function[1].id = p.function[0].id),
        ("duplicate mapping ids", |p| p.mapping[1].id = p.mapping[0].id),
        ("location id 0", |p| p.location[0].id = 0),
        ("function id 0", |p| p.function[0].id = 0),
        ("unknown location", |p| p.sample[0].location_id[0] = u64::MAX),
        ("unknown function", |p| p.location[0].line[0].function_id = 1 << 63),
        ("unknown string", |p| p.function[0].name = 1 << 40),
        ("negative string", |p| p.function[0].filename = -1),
        ("too many values", |p| p.sample[0].value.push(7)),
        ("no value types", |p| p.sample_type.clear()),
        ("no strings", |p| p.string_table.clear()),
        ("first string not empty", |p| p.string_table[0] = b"x".to_vec()),
    ];
    for (what, spoil) in cases {
        let mut profile = example().profile;
        spoil(&mut profile);
        assert_refused_or_noted(&run_bytes(&pprof::gzip(&pprof::raw(&profile))), what);
    }
}

#[test]
fn ids_may_be_any_number() {
    let mut profile = example().profile;
    for location in &mut profile.location {
        location.id = u64::MAX - location.id;
    }
    for id in profile.sample.iter_mut().flat_map(|sample| &mut sample.location_id) {
        *id = u64::MAX - *id;
    }
    let output = run_bytes(&pprof::raw(&profile));
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let report: perflens_tests::cli::Report = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report.line_costs(), ["src/main.rs:10 0 30", "src/lib.rs:4 20 20"]);
}

#[test]
fn a_hostile_drop_frames_expression_ends() {
    for expression in ["(a*)*b", "(((((a{100}){100}){100}){100}){100})", "(", "\\", "(?=x)", "x{999999999}"] {
        let mut mini = Mini::parse(&format!("cpu/ns\n!drop {expression}\na.rs:1 f; a.rs:2 g = 1"));
        mini.profile.string_table.push(vec![b'a'; 100_000]);
        let name = i64::try_from(mini.profile.string_table.len()).unwrap() - 1;
        mini.profile.function[0].name = name;
        let output = run_bytes(&mini.gzip());
        assert!(matches!(output.code, Some(0 | 1)), "{expression}: {}", output.stderr);
        if output.code == Some(1) {
            assert_refused(&output, expression);
        }
    }
}

fn folder_with(name: &str, bytes: &[u8]) -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("writing a file");
    (folder, path)
}

#[test]
fn a_missing_file_and_a_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = run(&folder.path().join("missing.pb.gz"));
    assert_refused(&missing, "missing");
    assert!(missing.stderr.contains("missing.pb.gz"), "{}", missing.stderr);
    assert_refused(&run(folder.path()), "a folder");
    let (_folder, file) = folder_with("file", b"");
    assert_refused(&run(&file.join("below")), "a file as a folder");
}

#[test]
#[cfg(unix)]
fn a_file_without_permission_is_refused_except_to_root() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = folder_with("secret.pb.gz", &example().gzip());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let may_read_anyway = File::open(&path).is_ok();
    let output = run(&path);
    if may_read_anyway {
        assert_eq!(output.code, Some(0), "root reads any file: {}", output.stderr);
    } else {
        assert_refused(&output, "no permission");
        assert!(output.stderr.contains("secret.pb.gz"), "{}", output.stderr);
    }
}

/// Writes into a named pipe from another thread, in pieces, and then closes it.
#[cfg(unix)]
fn through_fifo(bytes: Vec<u8>) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("pipe");
    let status = Command::new("mkfifo").arg(&path).status().expect("running mkfifo");
    assert!(status.success());
    let writer = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut pipe = File::options().write(true).open(path).expect("opening a pipe");
            for piece in bytes.chunks(bytes.len() / 5 + 1) {
                // The reader may have gone, having seen enough.
                if pipe.write_all(piece).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
    let output = run(&path);
    writer.join().expect("writing into a pipe");
    output
}

#[test]
#[cfg(unix)]
fn a_file_that_arrives_slowly_is_read_to_its_end() {
    let output = through_fifo(example().gzip());
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("src/lib.rs"));
}

#[test]
#[cfg(unix)]
fn a_file_that_ends_while_it_is_read_is_refused() {
    let gzip = example().gzip();
    assert_refused(&through_fifo(gzip[..gzip.len() / 2].to_vec()), "half a file");
    assert_refused(&through_fifo(b"\x1f".to_vec()), "half a signature");
}

#[test]
fn standard_input_is_read_and_judged_like_a_file() {
    let from_stdin = |bytes: &[u8]| {
        Run::new(["report", "-", "--format", "json", "--top", "0"]).stdin(bytes).memory(MEBIBYTES).output()
    };
    for bytes in [example().gzip(), example().raw()] {
        let output = from_stdin(&bytes);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    }
    for bytes in [&b""[..], b"hello\n", &example().gzip()[..30]] {
        assert_refused(&from_stdin(bytes), "standard input");
    }
}

/// `perflens report … | head -1` must not look like a crash.
#[test]
fn a_reader_that_leaves_early_is_no_crash() {
    let lines = (1..=5000).map(|i| format!("a.rs:{i} f = 1")).collect::<Vec<_>>().join("\n");
    let (_folder, path) = folder_with("p.pb", &Mini::parse(&format!("cpu/ns\n{lines}")).raw());
    for format in ["json", "text", "markdown"] {
        let mut child = Command::new(binary())
            .arg("report")
            .arg(&path)
            .args(["--top", "0", "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The report is larger than a pipe holds, so the program meets a closed one.
        let mut first = [0];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{format}: {:?} {said}", output.status);
        assert_eq!(said, "", "{format}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_and_no_crash() {
    let (_folder, path) = folder_with("p.pb", &example().raw());
    for format in ["json", "text"] {
        let output = Command::new("sh")
            .args(["-c", "exec \"$0\" report \"$1\" --format \"$2\" > /dev/full"])
            .arg(binary())
            .arg(&path)
            .arg(format)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{format}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{format}: {said}");
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let (_folder, path) = folder_with("p.pb", &example().raw());
    let path = path.to_str().unwrap();
    for args in [
        &[][..],
        &["repot", path],
        &["report"],
        &["report", path, path],
        &["report", path, "--nonsense"],
        &["report", path, "--format", "yaml"],
        &["report", path, "--by", "week"],
        &["report", path, "--top", "many"],
        &["report", path, "--top", "-1"],
        &["report", path, "--filter", "main"],
        &["report", path, "--filter", "colour=red"],
        &["report", path, "--filter", "frame.thread=x"],
        &["report", path, "--normalize"],
        &["annotate", "src/main.rs"],
        &["explain"],
    ] {
        let output = Run::new(args.iter().copied()).output();
        assert_eq!(output.code, Some(2), "{args:?}: {}", output.stderr);
        assert_eq!(output.stdout, "", "{args:?}");
        assert_ne!(output.stderr, "", "{args:?}");
    }
}

#[test]
fn names_from_profiles_can_not_control_a_terminal() {
    let evil = "evil\u{1b}[2Jname\u{202e}\u{7}";
    let mini = Mini::parse(&format!("cpu/ns\n\"a\u{1b}[0m.rs\":1 {evil} = 1 {{k\u{1b}=v\u{1b}}}"));
    let (_folder, path) = folder_with("p.pb", &mini.raw());
    let path = path.to_str().unwrap();
    for args in [
        &["report", path, "--format", "text"][..],
        &["report", path, "--format", "markdown"],
        &["report", path, "--format", "text", "--by", "function"],
        &["explain", path],
    ] {
        let output = Run::new(args.iter().copied()).output();
        assert_eq!(output.code, Some(0), "{args:?}: {}", output.stderr);
        for said in [&output.stdout, &output.stderr] {
            assert!(!said.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{args:?}: {said:?}");
        }
    }
}

/// Longer than any system lets a path be, so no file is meant, and none is searched for.
#[test]
fn endless_paths_are_no_files_of_the_workspace() {
    let workspace = tempfile::tempdir().unwrap();
    fs::create_dir(workspace.path().join("a")).unwrap();
    fs::write(workspace.path().join("a/a.rs"), "fn f() {}\n").unwrap();
    let path = format!("/x/{}a.rs", "a/".repeat(500_000));
    let (_folder, profile) = folder_with("p.pb", &Mini::parse(&format!("cpu/ns\n{path}:1 f = 1")).raw());
    let run = Run::report(&profile).arg("--workspace").arg(workspace.path());
    let output = run.memory(MEBIBYTES).deadline(DEADLINE).output();
    assert_eq!(output.code, Some(0), "signal {:?}: {}", output.signal, output.stderr);
    let report: perflens_tests::cli::Report = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report.lines[0].place.workspace_file, None);
}

/// Every pair of paths teaches a prefix of its own, and none may be tried on all paths.
#[test]
fn prefixes_without_number_take_no_time() {
    let workspace = tempfile::tempdir().unwrap();
    fs::create_dir(workspace.path().join("src")).unwrap();
    for file in ["src/a.rs", "src/b.rs"] {
        fs::write(workspace.path().join(file), "fn f() {}\n").unwrap();
    }
    let mut builder = Builder::new(&[("cpu", "nanoseconds")]);
    for build in 0..20_000 {
        for file in ["src/a.rs", "src/b.rs"] {
            let function_id = builder.function("g", &format!("/build{build}/{file}"), 1);
            let leaf = builder.location(0, 0, &[Line { function_id, line: 1, column: 0 }]);
            builder.sample(&[leaf], &[1]);
        }
    }
    let (_folder, profile) = folder_with("p.pb", &pprof::raw(&builder.profile));
    let run = Run::report(&profile).arg("--workspace").arg(workspace.path());
    let output = run.memory(MEBIBYTES).deadline(DEADLINE).output();
    assert_eq!(output.code, Some(0), "signal {:?}: {}", output.signal, output.stderr);
}

#[test]
fn more_filters_than_can_be_counted_are_wrong_usage() {
    let (_folder, path) = folder_with("p.pb", &example().raw());
    let filters = |count| std::iter::repeat_n(["--filter", "fn~m"], count).flatten();
    assert_eq!(Run::report(&path).args(filters(64)).output().code, Some(0));
    let output = Run::report(&path).args(filters(65)).output();
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("64"), "{}", output.stderr);
}

/// Sentences about what is wrong name files, types and whatever else is in a profile.
#[test]
fn failures_can_not_control_a_terminal() {
    let evil = "c\u{1b}[31mpu\nnext\u{202e}";
    let mut profile = Mini::parse("cpu/ns\na.rs:1 f = 1").profile;
    for text in &mut profile.string_table {
        if text == b"cpu" {
            *text = evil.as_bytes().to_vec();
        }
    }
    let (folder, path) = folder_with("p.pb", &pprof::raw(&profile));
    let other = folder.path().join("other.pb");
    example().write_to(&other);
    let (path, other) = (path.to_str().unwrap(), other.to_str().unwrap());
    let missing = format!("{path}{evil}");
    for args in [
        &["report", path, "--type", "heap"][..],
        &["report", path, "--base", other],
        &["report", other, "--base", path],
        &["report", &missing],
        &["report", path, "--workspace", &missing],
        &["annotate", &missing, "--profile", path],
    ] {
        let output = Run::new(args.iter().copied()).output();
        assert_ne!(output.code, Some(0), "{args:?}");
        assert_eq!(output.stderr.lines().count(), 1, "{args:?}: {:?}", output.stderr);
        assert!(!output.stderr.contains(['\u{1b}', '\u{202e}']), "{args:?}: {:?}", output.stderr);
    }
}

/// Where a recording has a file beside it, another profile may have anything.
#[cfg(unix)]
#[test]
fn a_pipe_beside_a_profile_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("x.pb.gz");
    Mini::parse("cpu/ns\na.rs:1 f = 1").write_to(&profile);
    assert!(Command::new("mkfifo").arg(folder.path().join("x.json")).status().unwrap().success());
    let run = Run::report(&profile).arg("--workspace").arg(folder.path());
    assert_eq!(run.deadline(Duration::from_mins(1)).output().code, Some(0));
}
