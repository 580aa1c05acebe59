//! Recording of processes: those that were there before, many that come and go, those in a container.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use perflens_tests::cli::{Guard, Report};
use perflens_tests::record::{Ground, User, descendants, is_root, percent, read_until, until};

/// Sampling error of shares, in percentage points, for a few hundred samples.
const ERROR: f64 = 10.0;

fn assert_share(ground: &Ground, report: &Report, file: &str, text: &str, expected: f64) {
    let share = percent(ground.row(report, file, text).costs.cumulative, report.profile.total);
    assert!((share - expected).abs() < ERROR, "{file}, {text}: {share} %, expected {expected} %");
}

/// Ends with what it has started.
struct Family(Guard);

impl Family {
    fn of(child: Child) -> Self {
        Self(Guard(child))
    }

    fn pid(&self) -> u32 {
        self.0.0.id()
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        let all = descendants(self.pid());
        let _ = Command::new("kill").arg("-KILL").args(all.iter().map(u32::to_string)).status();
    }
}

fn name_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

#[test]
fn a_running_process_is_recorded_with_what_it_has_started() {
    let methods = if is_root() { &["bpf", "copies"][..] } else { &["copies"] };
    for method in methods {
        let (ground, _) = Ground::c("hot");
        std::fs::copy(ground.work().join("hot"), ground.work().join("other")).unwrap();
        // Of the shell itself there is nothing to be seen, and its grandchildren count as well.
        let script = "./hot 1000000 & sh -c './other 1000000; true' & wait";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(ground.work()).stdout(Stdio::null());
        let shell = Family::of(shell.spawn().unwrap());
        let is_working = |&pid: &u32| ["hot\n", "other\n"].contains(&name_of(pid).as_str());
        let running = || descendants(shell.pid()).into_iter().filter(is_working).count();
        until("both run", || running() == 2);
        let (profile, pid) = (ground.profile(), shell.pid().to_string());
        let args = ["-p", &pid, "--duration", "4s", "--frequency", "499", "--method", method, "-o"];
        let output = ground.record(User::Same, args.into_iter().chain([profile.to_str().unwrap()]));
        assert_eq!(output.code, Some(0), "{method}: {}", output.stderr);
        assert_share(&ground, &ground.report(&[]), "hot.c", "/* three quarters */", 75.0);
        // How much they get of a busy machine is its own affair.
        for name in ["hot", "other"] {
            let report = ground.report(&["--filter", &format!("label.process={name}")]);
            assert!(report.profile.samples.unwrap() > 20, "{method}, {name}: {:?}", report.profile);
        }
        assert_eq!(running(), 2, "they go on");
    }
}

/// Resident memory of the recording and its recorder, in KiB.
fn resident(recording: u32, command: &str) -> u64 {
    let recorders = descendants(recording).into_iter().filter(|&pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(10).any(|part| part == b"__recorder") && name_of(pid) != format!("{command}\n")
    });
    let sizes = recorders.chain([recording]).map(|pid| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it runs");
        size.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    });
    sizes.sum()
}

#[test]
fn processes_that_came_and_went_take_no_memory() {
    if !is_root() {
        return;
    }
    let (ground, _) = Ground::c("hot");
    let script =
        "i=0; while [ $i -lt 3000 ]; do ./hot 3 > /dev/null; i=$((i+1)); [ $((i % 1000)) -ne 0 ] || echo at $i; done";
    let mut recording = ground.perflens(User::Same);
    recording.args(["record", "--method", "bpf", "--frequency", "999", "-o"]).arg(ground.profile());
    recording.args(["--", "sh", "-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recording = Guard(recording.spawn().unwrap());
    let pid = recording.0.id();
    let mut said = recording.0.stdout.take().unwrap();
    let mut at = |text: &str| {
        read_until(&mut said, text);
        resident(pid, "sh")
    };
    let (early, late) = (at("at 1000"), at("at 3000"));
    // Where each keeps its mappings and stacks it is 16 KiB, 32 MiB more.
    assert!(late < early + (2 << 10), "{early} KiB after 1000 processes, {late} KiB after 3000");
    read_until(&mut said, "samples in");
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    assert!(recording.0.wait().unwrap().success());
    // They were all seen.
    let report = ground.report(&[]);
    let work = percent(report.function("burn").costs.flat, report.profile.total);
    assert!(work > 40.0, "{work} % of {}", report.profile.total);
}

/// A root file system of its own, with the program where the test has it outside. There, something else has its name.
fn container(ground: &Ground, program: &Path) -> PathBuf {
    let root = ground.path().join("root");
    let put = |from: &Path| {
        let to = root.join(from.strip_prefix("/").expect("a whole path"));
        std::fs::create_dir_all(to.parent().expect("it has a folder")).expect("a folder");
        std::fs::copy(from, to).expect("a copy");
    };
    put(program);
    let libraries = Command::new("ldd").arg(program).output().expect("it is everywhere");
    let libraries = String::from_utf8(libraries.stdout).expect("it is text");
    libraries.split_whitespace().filter(|word| word.starts_with('/')).for_each(|library| put(Path::new(library)));
    let decoy = ground.work().join("decoy.c");
    std::fs::write(&decoy, "int main(void) { for (volatile int i = 0; i < 1000;) i++; }\n").expect("a file");
    let built = Command::new("gcc").args(["-g", "-o"]).arg(program).arg(&decoy).status();
    assert!(built.is_ok_and(|status| status.success()));
    root
}

/// As container runtimes do: namespaces of its own, and layers of file systems as its root.
fn in_container(root: &Path, program: &Path, arguments: &str) -> Vec<String> {
    let (lower, all) = (root.display(), root.with_file_name("layers"));
    let script = format!(
        "mkdir -p {0} && mount -t tmpfs none {0} && mkdir {0}/upper {0}/work {0}/root &&
         mount -t overlay -o lowerdir={lower},upperdir={0}/upper,workdir={0}/work none {0}/root &&
         exec chroot {0}/root {1} {arguments}",
        all.display(),
        program.display()
    );
    ["unshare", "--mount", "--pid", "--fork", "sh", "-c", &script].map(str::to_owned).to_vec()
}

#[test]
fn a_program_in_a_container_has_its_lines() {
    if !is_root() {
        return;
    }
    for method in ["bpf", "copies"] {
        let (ground, program) = Ground::c("hot");
        let root = container(&ground, &program);
        let profile = ground.profile();
        let args = ["--method", method, "--frequency", "499", "-o", profile.to_str().unwrap(), "--"].map(str::to_owned);
        let output = ground.record(User::Same, args.into_iter().chain(in_container(&root, &program, "2000")));
        assert_eq!(output.code, Some(0), "{method}: {}{}", output.stdout, output.stderr);
        let report = ground.report(&[]);
        assert_share(&ground, &report, "hot.c", "/* three quarters */", 75.0);
        assert_share(&ground, &report, "hot.c", "/* one quarter */", 25.0);
        assert!(percent(report.function("main").costs.cumulative, report.profile.total) > 95.0, "{method}");
    }
}

#[test]
fn a_container_that_runs_already_has_its_lines() {
    if !is_root() {
        return;
    }
    for method in ["bpf", "copies"] {
        let (ground, program) = Ground::c("hot");
        let root = container(&ground, &program);
        let words = in_container(&root, &program, "1000000");
        let mut outer = Command::new(&words[0]);
        let outer = Family::of(outer.args(&words[1..]).stdout(Stdio::null()).spawn().unwrap());
        let inner = || descendants(outer.pid()).into_iter().find(|&pid| name_of(pid) == "hot\n");
        until("it runs", || inner().is_some());
        let (profile, pid) = (ground.profile(), inner().unwrap().to_string());
        let args = ["-p", &pid, "--duration", "2s", "--frequency", "499", "--method", method, "-o"];
        let output = ground.record(User::Same, args.into_iter().chain([profile.to_str().unwrap()]));
        assert_eq!(output.code, Some(0), "{method}: {}{}", output.stdout, output.stderr);
        let report = ground.report(&[]);
        assert_share(&ground, &report, "hot.c", "/* three quarters */", 75.0);
        assert!(percent(report.function("main").costs.cumulative, report.profile.total) > 95.0, "{method}");
    }
}

/// open-telemetry/opentelemetry-ebpf-profiler#315: nothing here needs the file system of tracing.
#[test]
fn recording_needs_no_tracefs() {
    if !is_root() {
        return;
    }
    let (ground, _) = Ground::c("hot");
    let inner = ground.perflens(User::Same);
    let hide = "for folder in debug tracing; do mount -t tmpfs none /sys/kernel/$folder || exit 9; done; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", hide, "sh"]).arg(inner.get_program()).current_dir(ground.work());
    command.args(["record", "--method", "bpf", "--frequency", "499", "-o"]).arg(ground.profile());
    let status = command.args(["--", "./hot", "1500"]).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    assert_share(&ground, &ground.report(&[]), "hot.c", "/* three quarters */", 75.0);
}
