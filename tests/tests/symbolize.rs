//! Profiles with bare addresses, and programs built here that they are of.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use expect_test::expect;
use perflens_tests::cli::Run;
use perflens_tests::http::HttpServer;
use perflens_tests::otlp::{JSON, Receiver, post};
use perflens_tests::pprof::{self, Builder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const SOURCE: &str = "\
static inline __attribute__((always_inline)) int twice(int x) {
    volatile int y = x; return y * 2;
}
__attribute__((noinline)) int work(int x) {
    return twice(x);
}
int main(int argc, char** argv) {
    return work(argc);
}
";

fn tool(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; tests/run installs it"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A program, and what its headers say.
struct Program {
    folder: TempDir,
    build_id: String,
    /// Of `work`, as the file states it.
    work: u64,
    /// Offset and stated address of the code.
    code: (u64, u64),
}

impl Program {
    fn build(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("demo.c"), SOURCE).unwrap();
        tool(Command::new("gcc").args(["-O1", "-g", "-o", "demo"]).args(flags).arg("demo.c").current_dir(&folder));
        let read = |args: &[&str]| tool(Command::new(args[0]).args(&args[1..]).arg("demo").current_dir(&folder));
        let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        let notes = read(&["readelf", "-n"]);
        let build_id = notes.split("Build ID: ").nth(1).map_or("", |rest| rest.split_whitespace().next().unwrap());
        let symbols = read(&["nm"]);
        let work = symbols.lines().find(|line| line.ends_with(" T work")).unwrap();
        let headers = read(&["readelf", "-lW"]);
        let code = headers.lines().find(|line| line.contains(" R E ")).unwrap();
        let code: Vec<&str> = code.split_whitespace().collect();
        Self {
            build_id: build_id.to_owned(),
            work: hex(work.split_whitespace().next().unwrap()),
            code: (hex(code[1]), hex(code[2])),
            folder,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("demo")
    }

    /// A profile with one sample in `twice`, inlined into `work`, of the program loaded somewhere.
    fn profile(&self, file: &str, build_id: &str) -> pprof::Profile {
        let start = 0x7f12_3450_0000;
        let address = start + (self.work + 5 - self.code.1);
        profile(file, build_id, start, self.code.0, address)
    }
}

fn profile(file: &str, build_id: &str, start: u64, offset: u64, address: u64) -> pprof::Profile {
    let mut builder = Builder::new(&[("cpu", "nanoseconds")]);
    let mapping = builder.mapping(file);
    let leaf = builder.location(mapping, address, &[]);
    builder.sample(&[leaf], &[40]);
    let build_id = builder.string(build_id);
    let mut profile = builder.profile;
    let row = &mut profile.mapping[0];
    (row.memory_start, row.memory_limit, row.file_offset) = (start, start + 0x1000, offset);
    (row.build_id, row.has_functions) = (build_id, false);
    profile
}

/// The report of a profile, and what `explain` says.
fn report(profile: &pprof::Profile, args: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cpu.pb.gz");
    std::fs::write(&path, pprof::gzip(&pprof::raw(profile))).unwrap();
    let output = Run::report(&path).args(args).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let words = Run::new(["explain".as_ref(), path.as_os_str()]).args(args).output();
    assert_eq!(words.code, Some(0), "{}", words.stderr);
    (serde_json::from_str(&output.stdout).unwrap(), words.stdout.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// `file:line function` of the lines of a report, files without their folders.
fn lines(report: &Value) -> Vec<String> {
    let rows = report["lines"].as_array().unwrap().iter();
    let mut lines: Vec<String> = rows
        .map(|row| {
            let file = row["file"].as_str().unwrap().rsplit('/').next().unwrap();
            format!("{file}:{} {}", row["line"], row["functions"][0].as_str().unwrap())
        })
        .collect();
    lines.sort();
    lines
}

const LINES: [&str; 2] = ["demo.c:2 twice", "demo.c:5 work"];

#[track_caller]
fn assert_unresolved(report: &Value, why: &str) {
    assert_eq!(lines(report), [""; 0]);
    assert_eq!(report["accounting"]["unresolved"], 40);
    let row = &report["accounting"]["without_lines"][0];
    assert_eq!(row["value"], 40);
    let said = row["why"].as_str().unwrap_or_default();
    assert!(said.contains(why), "`{said}` doesn't say `{why}`");
    assert_ne!(row["advice"].as_str().unwrap_or_default(), "", "what to do is said");
}

#[test]
fn addresses_become_lines_where_the_program_is() {
    for flags in [&[][..], &["-no-pie"], &["-Wl,-z,separate-code"], &["-Wl,-Ttext-segment=0x3000000", "-no-pie"]] {
        let program = Program::build(flags);
        let path = program.path();
        let (report, _) = report(&program.profile(path.to_str().unwrap(), &program.build_id), &[]);
        assert_eq!(lines(&report), LINES, "{flags:?}");
        assert_eq!(report["accounting"]["with_line"], 40);
        assert_eq!(report["functions"][0]["start_line"].as_i64().unwrap() % 3, 1, "{}", report["functions"]);
    }
}

/// OpenTelemetry and servers send what the file states, with a mapping to match, or with none.
#[test]
fn addresses_may_be_those_of_the_file() {
    let program = Program::build(&["-no-pie"]);
    let path = program.path();
    let (offset, start) = program.code;
    let stated = profile(path.to_str().unwrap(), &program.build_id, start, offset, program.work + 5);
    assert_eq!(lines(&report(&stated, &[]).0), LINES);
    let mut open = stated;
    (open.mapping[0].memory_start, open.mapping[0].memory_limit, open.mapping[0].file_offset) = (0, 0, 0);
    assert_eq!(lines(&report(&open, &[]).0), LINES);
}

/// parca-dev/parca-agent#2096
#[test]
fn an_address_outside_of_its_mapping_is_refused() {
    let program = Program::build(&[]);
    let path = program.path();
    // The bias was taken off already, or twice; the mapping still has it.
    let twice = profile(path.to_str().unwrap(), &program.build_id, 0x7f12_3450_0000, program.code.0, program.work);
    let (report, words) = report(&twice, &[]);
    assert_unresolved(&report, "has no code at 1 of the addresses");
    assert!(words.contains("has no code at 1 of the addresses"), "{words}");
}

#[test]
fn a_program_elsewhere_is_found_by_its_build() {
    let program = Program::build(&[]);
    let profile = program.profile("/srv/app/demo", &program.build_id);
    let (nothing, words) = report(&profile, &[]);
    assert_unresolved(&nothing, "no binary and no debug info for demo");
    let id = &program.build_id;
    assert!(words.contains(&format!("no binary and no debug info for demo (build id {id})")), "{words}");
    assert!(words.contains("symbols.debugDirs"), "{words}");

    // By name in the folder of a workspace, or among debug info.
    let folder = program.folder.path().to_str().unwrap();
    assert_eq!(lines(&report(&profile, &["--workspace", folder]).0), LINES);
    assert_eq!(lines(&report(&profile, &["--debug-dir", folder]).0), LINES);
    let by_id = tempfile::tempdir().unwrap();
    let place = by_id.path().join(".build-id").join(&id[..2]);
    std::fs::create_dir_all(&place).unwrap();
    std::fs::rename(program.path(), place.join(&id[2..])).unwrap();
    assert_eq!(lines(&report(&profile, &["--debug-dir", by_id.path().to_str().unwrap()]).0), LINES);
}

#[test]
fn debug_info_is_looked_for_where_the_settings_say() {
    let program = Program::build(&[]);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("cpu.pb.gz");
    std::fs::write(&path, pprof::gzip(&pprof::raw(&program.profile("/srv/app/demo", &program.build_id)))).unwrap();
    let report = |config: &str| {
        let folder = home.path().join("perflens");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), config).unwrap();
        let output = Run::report(&path).env("XDG_CONFIG_HOME", home.path()).folder(program.folder.path()).output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        lines(&serde_json::from_str(&output.stdout).unwrap())
    };
    assert_eq!(report(""), [""; 0]);
    assert_eq!(report(&format!("[symbols]\ndebugDirs = [{:?}]\n", program.folder.path())), LINES);
    // Relative to where it runs.
    assert_eq!(report("[symbols]\ndebugDirs = [\".\"]\n"), LINES);
}

#[test]
fn another_build_is_not_used() {
    let program = Program::build(&[]);
    let path = program.path();
    let (report, words) =
        report(&program.profile(path.to_str().unwrap(), "00112233445566778899aabbccddeeff00112233"), &[]);
    assert_unresolved(&report, "another build");
    assert!(words.contains("another build"), "{words}");
}

/// google/pprof#885: the mapping has the name of the loader, and the build id of the program.
#[test]
fn a_program_started_through_its_loader() {
    let program = Program::build(&[]);
    let loader = "/lib64/ld-linux-x86-64.so.2";
    assert!(Path::new(loader).exists());
    let profile = program.profile(loader, &program.build_id);
    let (nothing, _) = report(&profile, &[]);
    assert_unresolved(&nothing, "ld-linux-x86-64.so.2 can't be used");
    assert_unresolved(&nothing, "another build");
    let by_id = tempfile::tempdir().unwrap();
    let place = by_id.path().join(&program.build_id[..2]);
    std::fs::create_dir_all(&place).unwrap();
    std::fs::copy(program.path(), place.join(&program.build_id[2..])).unwrap();
    assert_eq!(lines(&report(&profile, &["--debug-dir", by_id.path().to_str().unwrap()]).0), LINES);
}

#[test]
fn without_a_build_id_only_an_older_program_will_do() {
    let program = Program::build(&["-Wl,--build-id=none"]);
    let path = program.path();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let profile = program.profile(path.to_str().unwrap(), "");
    let hour = Duration::from_hours(1);
    file.set_modified(SystemTime::now() - hour).unwrap();
    assert_eq!(lines(&report(&profile, &[]).0), LINES);
    file.set_modified(SystemTime::now() + hour).unwrap();
    assert_unresolved(&report(&profile, &[]).0, "built after the profile was taken");
}

/// What has lines is left alone, whatever lies at the path.
#[test]
fn lines_of_the_profile_stay() {
    let program = Program::build(&[]);
    let path = program.path();
    let mut builder = Builder::new(&[("cpu", "nanoseconds")]);
    let mapping = builder.mapping(path.to_str().unwrap());
    let function = builder.function("original", "/src/original.c", 1);
    let line = pprof::Line { function_id: function, line: 7, ..pprof::Line::default() };
    let leaf = builder.location(mapping, 0x4000_1000, &[line]);
    builder.sample(&[leaf], &[40]);
    assert_eq!(lines(&report(&builder.profile, &[]).0), ["original.c:7 original"]);
}

/// OpenTelemetry's profilers name a build in three ways, and its binary by its last name only.
#[test]
fn received_otlp_finds_binaries_by_gnu_and_go_build_ids_and_by_hash() {
    let program = Program::build(&[]);
    let bytes = std::fs::read(program.path()).unwrap();
    let ends = [&bytes[..4096], &bytes[bytes.len() - 4096..], &(bytes.len() as u64).to_be_bytes()].concat();
    let digits: Vec<String> = Sha256::digest(&ends)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let hash = digits.concat();
    let go = GoProgram::build();
    // Addresses are those of the file, and already of the instruction.
    let request = |name: &str, key: &str, id: &str, address: u64| {
        json!({
            "resourceProfiles": [{ "resource": {}, "scopeProfiles": [{ "scope": {}, "profiles": [{
                "sampleType": { "typeStrindex": 1, "unitStrindex": 2 }, "timeUnixNano": "1000", "durationNano": "10",
                "samples": [{ "stackIndex": 1, "values": ["40"] }],
            }]}]}],
            "dictionary": {
                "stringTable": ["", "cpu", "nanoseconds", name, format!("process.executable.build_id.{key}")],
                "attributeTable": [{}, { "keyStrindex": 4, "value": { "stringValue": id } }],
                "mappingTable": [{}, { "memoryStart": "0", "memoryLimit": "0", "filenameStrindex": 3, "attributeIndices": [1] }],
                "locationTable": [{}, { "mappingIndex": 1, "address": address.to_string() }],
                "stackTable": [{}, { "locationIndices": [1] }],
                "functionTable": [{}], "linkTable": [{}],
            },
        })
    };
    let (demo, app) = (program.folder.path(), go.folder.path());
    for (what, folder, request, expected) in [
        ("gnu", demo, request("demo", "gnu", &program.build_id, program.work + 5), &LINES[..]),
        ("htlhash", demo, request("demo", "htlhash", &hash, program.work + 5), &LINES[..]),
        ("go", app, request("app", "go", &go.build_id, go.work), &["main.go:7 main.work"][..]),
        ("another build", demo, request("demo", "gnu", "00ff00ff00ff", program.work + 5), &[][..]),
        ("another hash", demo, request("demo", "htlhash", &"0".repeat(32), program.work + 5), &[][..]),
    ] {
        let mut receiver = Receiver::start(&[]);
        let reply = post(receiver.http, JSON, request.to_string().as_bytes());
        assert_eq!(reply.status, 200, "{what}: {}", reply.text());
        let output = receiver.end();
        assert_eq!(output.code, Some(0), "{what}: {}", output.stderr);
        let report = Run::report(&receiver.written()).arg("--workspace").arg(folder).output();
        assert_eq!(report.code, Some(0), "{what}: {}", report.stderr);
        assert_eq!(lines(&serde_json::from_str(&report.stdout).unwrap()), expected, "{what}");
    }
}

struct GoProgram {
    folder: TempDir,
    build_id: String,
    /// Somewhere in `main.work`.
    work: u64,
}

impl GoProgram {
    fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let code = "package main\n\nimport \"os\"\n\n//go:noinline\nfunc work(x int) int {\n\treturn x * 3\n}\n\nfunc main() {\n\tos.Exit(work(len(os.Args)) - 3)\n}\n";
        std::fs::write(folder.path().join("go.mod"), "module example.com/app\n\ngo 1.19\n").unwrap();
        std::fs::write(folder.path().join("main.go"), code).unwrap();
        let go = |args: &[&str]| tool(Command::new("go").args(args).current_dir(&folder));
        go(&["build", "-o", "app", "."]);
        let build_id = go(&["tool", "buildid", "app"]).trim().to_owned();
        let symbols = go(&["tool", "nm", "app"]);
        let work = symbols.lines().find(|line| line.ends_with(" T main.work")).unwrap();
        Self { build_id, work: u64::from_str_radix(work.split_whitespace().next().unwrap(), 16).unwrap(), folder }
    }
}

/// What samply writes beside its recordings names addresses of binaries that are not here.
#[test]
fn names_beside_a_recording_of_samply_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let id = "4321abcd4321abcd4321abcd4321abcd4321abcd";
    let profile = json!({
        "meta": { "interval": 1, "preprocessedProfileVersion": 50, "product": "app" },
        "libs": [{ "name": "app", "path": "/build/app", "codeId": id }],
        "threads": [{
            "name": "main", "pid": "7", "tid": 8,
            "samples": { "stack": [0], "weightType": "samples", "time": [0] },
            "stackTable": { "prefix": [null], "frame": [0] },
            "frameTable": { "address": [4100], "func": [0], "line": [null] },
            "funcTable": { "name": [0], "resource": [0] },
            "resourceTable": { "lib": [0] },
            "stringArray": ["0x1004"],
        }],
    });
    let names = json!({
        "string_table": ["UNKNOWN", "work", "/src/demo.c"],
        "data": [{
            "debug_name": "app", "debug_id": "", "code_id": id,
            "symbol_table": [{ "rva": 4096, "symbol": 1, "frames": [{ "function": 1, "file": 2, "line": 5 }] }],
            "known_addresses": [[4100, 0]],
        }],
    });
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let report = |name: &str| Run::report(&folder.path().join(name)).json();
    write("app.json", profile.to_string().as_bytes());
    write("app.json.gz", &pprof::gzip(profile.to_string().as_bytes()));
    let bare = report("app.json");
    assert_eq!(bare.line_costs(), [""; 0]);
    assert!(
        bare.profile.notes.iter().any(|note| note.contains("there is no app.syms.json beside it")),
        "{:?}",
        bare.profile.notes
    );
    // As samply calls it for either, and for one that was packed later.
    write("app.json.syms.json", names.to_string().as_bytes());
    assert_eq!(report("app.json.gz").line_costs(), ["/src/demo.c:5 1 1"]);
    std::fs::remove_file(folder.path().join("app.json.syms.json")).unwrap();
    write("app.syms.json", names.to_string().as_bytes());
    for name in ["app.json", "app.json.gz"] {
        let named = report(name);
        assert_eq!(named.line_costs(), ["/src/demo.c:5 1 1"], "{name}");
        assert_eq!(named.profile.notes, [""; 0], "{name}");
    }
    write("app.syms.json", b"{");
    let damaged = report("app.json");
    assert!(
        damaged.profile.notes.iter().any(|note| note.contains("app.syms.json can't be used")),
        "{:?}",
        damaged.profile.notes
    );
}

/// One that samply made. The program is not here, and this version of samply keeps one line for a function.
#[test]
fn a_recording_of_samply_has_its_functions_and_says_why_no_lines() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samply/shares.json.gz");
    let report = Run::report(&file).json();
    let told = "shares.json.syms.json has one line for each function";
    assert!(report.profile.notes.iter().any(|note| note.contains(told)), "{:?}", report.profile.notes);
    let share = |name: &str| {
        let row = report.functions.iter().find(|row| row.name == name).unwrap();
        assert_eq!(row.file.as_deref(), Some("/tmp/demo/shares.c"));
        row.costs.flat as f64 / report.profile.total as f64
    };
    let (twice, once) = (share("twice"), share("once"));
    assert!((0.55..0.72).contains(&twice) && (0.24..0.38).contains(&once), "{twice} {once}");
}

/// A server of Parca's kind: what came to it with bare addresses has lines that functions start on.
#[test]
fn lines_that_a_server_looked_up_are_looked_up_again_where_the_program_is() {
    let program = Program::build(&[]);
    let mut profile = program.profile("/build/demo", &program.build_id);
    // `twice` is inlined into `work`, which the server doesn't see.
    let (name, file) = ("work", "/build/src/demo.c");
    let text = |profile: &mut pprof::Profile, text: &str| {
        profile.string_table.push(text.as_bytes().to_vec());
        i64::try_from(profile.string_table.len()).unwrap() - 1
    };
    let (name, filename) = (text(&mut profile, name), text(&mut profile, file));
    profile.function.push(pprof::Function { id: 1, name, filename, ..pprof::Function::default() });
    profile.location[0].line.push(pprof::Line { function_id: 1, line: 4, column: 0 });
    let answer = perflens_tests::parca::answer(pprof::gzip(&pprof::raw(&profile)));
    let server = HttpServer::start(move |_| answer.clone());
    let page = server
        .url("/?expression_a=process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta&time_selection_a=relative:minute|15");
    let shown = |args: &[&str]| {
        let output = Run::new(["report", &page, "--format", "json"]).args(args.iter().copied()).output();
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        let notes: Vec<&str> =
            report["profile"]["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let notes: Vec<&str> = notes.into_iter().filter(|note| note.contains("looked up")).collect();
        (lines(&report), notes.join("\n"))
    };
    let (rows, notes) = shown(&[]);
    assert_eq!(rows, ["demo.c:4 work"]);
    expect!["the lines of 100% of the value were looked up by the server, which mostly gives the line that a function starts on; with the binary of the same build in a folder of symbols.debugDirs (--debug-dir), or in the workspace, they are looked up here"].assert_eq(&notes);
    let (rows, notes) = shown(&["--debug-dir", program.folder.path().to_str().unwrap()]);
    assert_eq!(rows, LINES);
    expect!["the lines of 100% of the value were looked up here, in binaries of the same build, not by the server"]
        .assert_eq(&notes);
    // A program of another build is none.
    let other = Program::build(&["-DOTHER"]);
    std::fs::write(other.folder.path().join("other.c"), "int other(void) { return 1; }").unwrap();
    tool(Command::new("gcc").args(["-g", "-o", "demo", "demo.c", "other.c"]).current_dir(&other.folder));
    assert_eq!(shown(&["--debug-dir", other.folder.path().to_str().unwrap()]).0, ["demo.c:4 work"]);
    // A file has what was found out when it was fetched.
    let output = Run::new(["fetch", &page, "-o", "fetched.pb.gz"]).folder(program.folder.path()).output();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("were looked up here"), "{}", output.stderr);
    let fetched = Run::report(&program.folder.path().join("fetched.pb.gz")).output();
    assert_eq!(lines(&serde_json::from_str(&fetched.stdout).unwrap()), LINES);
}
