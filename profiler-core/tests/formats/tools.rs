//! Files that the tools themselves write, here and now. What the tools need is installed by
//! `tests/run`; where one is missing, the test says so, and fails under `CI`.

use std::path::Path;
use std::process::Command;

use crate::{functions, lines, profile, types};

/// Says what is not tried; under `CI` everything must be.
#[expect(clippy::print_stderr, reason = "a test that did not look must say so")]
fn untried(why: &str) {
    eprintln!("{why}, so that is not tried");
    assert!(std::env::var_os("CI").is_none(), "{why}");
}

/// Whether a tool is there.
fn has(tool: &str, version: &str) -> bool {
    let found = Command::new(tool).arg(version).output().is_ok_and(|output| output.status.success());
    if !found {
        untried(&format!("{tool} is not installed"));
    }
    found
}

fn run(folder: &Path, command: &[&str]) {
    let output = Command::new(command[0]).args(&command[1..]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The bytes of the one file with this ending.
fn file(folder: &Path, ending: &str) -> Vec<u8> {
    let mut found = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let path = found.find(|path| path.to_string_lossy().ends_with(ending));
    std::fs::read(path.unwrap_or_else(|| panic!("no file ends with {ending}"))).unwrap()
}

#[test]
fn nodes_profiles_are_read() {
    if !has("node", "--version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let code = "function busy(count) {\n  let x = 0;\n  for (let i = 0; i < count; i++) {\n    x += Math.sqrt(x + 1);\n  }\n  return x;\n}\n\
                const kept = (globalThis.kept = []);\nfor (let i = 0; i < 20000; i++) kept.push({ i, text: 'x'.repeat(64) });\nbusy(1e8);\nconsole.log(kept.length);\n";
    std::fs::write(folder.path().join("app.js"), code).unwrap();
    run(folder.path(), &["node", "--cpu-prof", "--heap-prof", "app.js"]);
    let cpu = profile(file(folder.path(), ".cpuprofile"));
    assert_eq!(cpu.format(), "cpuprofile");
    assert!(lines(&cpu, 0).iter().any(|(line, cost)| line.contains("app.js:") && cost.0 > 0), "{:?}", lines(&cpu, 0));
    assert!(functions(&cpu, 0)["busy"].1 > 0);
    let heap = profile(file(folder.path(), ".heapprofile"));
    assert_eq!(heap.format(), "heapprofile");
    assert!(heap.sum(0).total > 0);
}

#[test]
fn pythons_profiles_are_read() {
    if !has("python3", "--version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("app.py"),
        "def work(n):\n    return sum(range(n))\n\nfor _ in range(50):\n    work(9000)\n",
    )
    .unwrap();
    run(folder.path(), &["python3", "-m", "cProfile", "-o", "out.pstats", "app.py"]);
    let profile = profile(file(folder.path(), ".pstats"));
    assert_eq!(profile.format(), "pstats");
    assert_eq!(functions(&profile, 0)["work"].0, 50);
}

#[test]
fn valgrinds_files_are_read() {
    if !has("valgrind", "--version") || !has("cc", "--version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let code = "#include <stdlib.h>\nstatic int work(int n) {\n  int *p = malloc(100);\n  p[0] = 0;\n  for (int i = 0; i < n; i++) p[0] += i;\n\
                  int r = p[0];\n  free(p);\n  return r;\n}\nint main(void) { return work(50000) & 1; }\n";
    std::fs::write(folder.path().join("app.c"), code).unwrap();
    run(folder.path(), &["cc", "-g", "-O0", "-o", "app", "app.c"]);
    for (tool, option, ending, format) in [
        ("callgrind", "--callgrind-out-file=callgrind.out", "callgrind.out", "callgrind"),
        ("cachegrind", "--cachegrind-out-file=cachegrind.out", "cachegrind.out", "callgrind"),
        ("dhat", "--dhat-out-file=dhat.json", "dhat.json", "dhat"),
    ] {
        let tool = format!("--tool={tool}");
        // The program's own result is not the tool's.
        let output =
            Command::new("valgrind").args([&*tool, option, "./app"]).current_dir(folder.path()).output().unwrap();
        assert!(folder.path().join(ending).exists(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
        let profile = profile(file(folder.path(), ending));
        assert_eq!(profile.format(), format, "{tool}");
        // Instructions first; bytes allocated in all last.
        let column = if format == "dhat" { profile.value_types().len() - 1 } else { 0 };
        assert!(
            lines(&profile, column).keys().any(|line| line.contains("app.c:")),
            "{tool}: {:?}",
            lines(&profile, column)
        );
    }
}

#[test]
fn the_jvms_recordings_are_read() {
    if !has("java", "-version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let code = "public class Busy {\n  static double work(long end) {\n    double x = 0;\n    while (System.nanoTime() < end) {\n\
                      x += Math.sqrt(x + 1);\n    }\n    return x;\n  }\n  public static void main(String[] args) {\n\
                    System.out.println(work(System.nanoTime() + 3_000_000_000L));\n  }\n}\n";
    std::fs::write(folder.path().join("Busy.java"), code).unwrap();
    run(folder.path(), &["java", "-XX:StartFlightRecording=filename=out.jfr,settings=profile", "Busy.java"]);
    let profile = profile(file(folder.path(), ".jfr"));
    assert_eq!(profile.format(), "jfr");
    assert!(
        functions(&profile, 0).iter().any(|(name, cost)| name == "Busy.work" && cost.1 > 0),
        "{:?}",
        functions(&profile, 0)
    );
}

#[test]
fn perfs_recording_and_its_text_agree() {
    if !has("perf", "--version") || !has("python3", "--version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = ["python3", "-c", "sum(i * i for i in range(2000000))"];
    let record = [&["perf", "record", "-e", "cpu-clock", "-g", "-o", "perf.data"][..], &program].concat();
    let output = Command::new(record[0]).args(&record[1..]).current_dir(folder.path()).output().unwrap();
    if !output.status.success() {
        untried(&format!("perf may not record here: {}", String::from_utf8_lossy(&output.stderr)));
        return;
    }
    let script = Command::new("perf").args(["script", "-i", "perf.data"]).current_dir(folder.path()).output().unwrap();
    let (data, script) = (profile(file(folder.path(), "perf.data")), profile(script.stdout));
    assert_eq!((data.format(), script.format()), ("perf.data", "perf-script"));
    assert!(data.samples().len() > 20);
    assert_eq!(data.samples().len(), script.samples().len());
    assert_eq!(data.sum(0), script.sum(0));
}

#[test]
fn py_spys_files_are_read() {
    if !has("python3", "--version") || !has("py-spy", "--version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let code = "def work(n):\n    return sum(i * i for i in range(n))\n\nfor _ in range(60):\n    work(300_000)\n";
    std::fs::write(folder.path().join("app.py"), code).unwrap();
    for (form, name, format) in [
        ("raw", "out.folded", "folded"),
        ("speedscope", "out.json", "speedscope"),
        ("chrometrace", "trace.json", "chrome-trace"),
    ] {
        let command =
            ["py-spy", "record", "--format", form, "--output", name, "--rate", "100", "--", "python3", "app.py"];
        let output = Command::new(command[0]).args(&command[1..]).current_dir(folder.path()).output().unwrap();
        if !folder.path().join(name).exists() {
            untried(&format!("py-spy may not record here: {}", String::from_utf8_lossy(&output.stderr)));
            return;
        }
        let profile = profile(file(folder.path(), name));
        assert_eq!(profile.format(), format, "{form}");
        let rows = lines(&profile, 0);
        assert!(rows.iter().any(|(line, cost)| line.ends_with("app.py:2") && cost.0 > 0), "{form}: {rows:?}");
        assert!(rows.iter().any(|(line, cost)| line.ends_with("app.py:5") && cost.1 > 0), "{form}: {rows:?}");
    }
}

#[test]
fn gos_profiles_are_read() {
    if !has("go", "version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("go.mod"), "module example.com/app\n\ngo 1.19\n").unwrap();
    let code = "package app\n\nimport \"testing\"\n\nvar sink float64\n\nfunc work(n int) {\n\tfor i := 0; i < n; i++ {\n\t\tsink += float64(i) / (sink + 1)\n\t}\n}\n\n\
                func TestWork(t *testing.T) {\n\tfor i := 0; i < 40; i++ {\n\t\twork(5_000_000)\n\t}\n}\n";
    std::fs::write(folder.path().join("app_test.go"), code).unwrap();
    run(folder.path(), &["go", "test", "-cpuprofile", "cpu.pb.gz", "-memprofile", "heap.pb.gz", "."]);
    let cpu = profile(file(folder.path(), "cpu.pb.gz"));
    assert_eq!((cpu.format(), types(&cpu)), ("pprof", vec!["samples/count".to_owned(), "cpu/nanoseconds".to_owned()]));
    let rows = lines(&cpu, 1);
    assert!(rows.iter().any(|(line, cost)| line.ends_with("app_test.go:9") && cost.0 > 0), "{rows:?}");
    assert!(rows.iter().any(|(line, cost)| line.ends_with("app_test.go:15") && cost.1 > 0), "{rows:?}");
    let heap = profile(file(folder.path(), "heap.pb.gz"));
    assert_eq!(types(&heap).last().unwrap(), "inuse_space/bytes");
}
