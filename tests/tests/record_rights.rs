//! Full recordings for ordinary users, by the helper with its capabilities or through sudo; and what gets no rights.
#![cfg(target_os = "linux")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use expect_test::expect;
use perflens_tests::cli::{Guard, Output, binary, recorder, wait_for};
use perflens_tests::record::{Ground, User, is_root, percent, until};

/// Programs in a folder that is root's own all the way.
struct Installed(tempfile::TempDir);

impl Installed {
    /// `None` where nobody may install.
    fn new() -> Option<Self> {
        if !is_root() {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("perflens-test-").tempdir_in("/opt").expect("a folder of root's");
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
        for (program, name) in [(binary(), "perflens"), (recorder(), "perflens-record")] {
            let to = folder.path().join(name);
            std::fs::copy(program, &to).expect("a copy");
            std::fs::set_permissions(&to, PermissionsExt::from_mode(0o755)).expect("it is ours");
        }
        Some(Self(folder))
    }

    fn program(&self) -> PathBuf {
        self.0.path().join("perflens")
    }

    fn helper(&self) -> PathBuf {
        self.0.path().join("perflens-record")
    }

    /// The one grant that the documentation asks for.
    fn grant(&self) {
        set_capabilities(&self.helper());
    }

    /// `perflens record ARGS` of somebody without any right.
    fn record(&self, ground: &Ground, args: &[&str]) -> Output {
        let mut command = ground.perflens_at(&self.program(), User::Ordinary);
        run(command.arg("record").arg("-o").arg(ground.profile()).args(args))
    }
}

fn set_capabilities(program: &Path) {
    let set = Command::new("setcap").arg("cap_bpf,cap_perfmon+ep").arg(program).status();
    assert!(set.is_ok_and(|status| status.success()), "capabilities can be put on files");
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    wait_for(command.spawn().expect("starting it"), Duration::from_mins(1))
}

/// How it was recorded: the end of the line that tells how many samples there are.
fn how(output: &Output) -> &str {
    let line = output.stdout.lines().find_map(|line| Some(line.split_once(" samples in ")?.1.split_once(", ")?.1));
    line.unwrap_or_else(|| panic!("{}{}", output.stdout, output.stderr))
}

fn assert_hot(ground: &Ground) {
    let report = ground.report(&[]);
    for (text, expected) in [("/* three quarters */", 75.0), ("/* one quarter */", 25.0)] {
        let share = percent(ground.row(&report, "hot.c", text).costs.cumulative, report.profile.total);
        assert!((share - expected).abs() < 10.0, "{text}: {share} %");
    }
    let main = report.function("main").costs.cumulative;
    assert!(percent(main, report.profile.total) > 95.0, "{main} of {}", report.profile.total);
}

#[test]
fn the_helper_records_in_full_for_an_ordinary_user() {
    let Some(installed) = Installed::new() else { return };
    installed.grant();
    let (ground, _) = Ground::c("hot");
    let output = installed.record(&ground, &["--frequency", "499", "--", "./hot", "2000"]);
    assert_eq!(how(&output), "with eBPF and unwind tables");
    assert_hot(&ground);
    // What only eBPF can.
    let (ground, _) = Ground::c("waits");
    let output = installed.record(&ground, &["--event", "off-cpu", "--", "./waits"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let report = ground.report(&[]);
    let dozing = ground.row(&report, "waits.c", "/* two thirds */").costs.cumulative;
    assert!((percent(dozing, report.profile.total) - 66.7).abs() < 10.0, "{dozing} of {}", report.profile.total);
}

#[test]
fn the_helper_records_a_running_process_of_its_caller_and_of_nobody_else() {
    let Some(installed) = Installed::new() else { return };
    installed.grant();
    let (ground, program) = Ground::c("hot");
    let mut own = Command::new("setpriv");
    own.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(&program);
    let own = Guard(own.arg("1000000").stdout(Stdio::null()).spawn().unwrap());
    let roots = Guard(Command::new(&program).arg("1000000").stdout(Stdio::null()).spawn().unwrap());
    for pid in [own.0.id(), roots.0.id()] {
        until("it runs", || std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == program));
    }
    let output = installed.record(&ground, &["-p", &own.0.id().to_string(), "--duration", "1500ms"]);
    assert_eq!(how(&output), "with eBPF and unwind tables");
    assert_hot(&ground);
    std::fs::remove_file(ground.profile()).unwrap();
    let output = installed.record(&ground, &["-p", &roots.0.id().to_string(), "--duration", "1s"]);
    assert_eq!(output.code, Some(1));
    let said = output.stderr.replace(&roots.0.id().to_string(), "PID");
    expect!["perflens: process PID belongs to another user, or holds more rights than its user: as root: --any-user\n"]
        .assert_eq(&said);
    assert!(!ground.profile().exists());
}

#[test]
fn a_helper_without_its_grant_is_told_how_to_get_it() {
    let Some(installed) = Installed::new() else { return };
    let (ground, _) = Ground::c("hot");
    let output = installed.record(&ground, &["--frequency", "499", "--", "./hot", "1500"]);
    let said = how(&output).replace(installed.helper().to_str().unwrap(), "HELPER");
    expect!["with copied stacks, own processes only; eBPF is not used: perflens-record has no rights yet; this grants it once: sudo setcap cap_bpf,cap_perfmon+ep HELPER"].assert_eq(&said);
    assert_hot(&ground);
}

/// It has capabilities, but somebody else could put another one in its place.
#[test]
fn a_helper_that_others_can_replace_is_not_used() {
    let Some(installed) = Installed::new() else { return };
    installed.grant();
    let doors: [(&str, &dyn Fn()); 3] = [
        ("the folder is open", &|| {
            std::fs::set_permissions(installed.0.path(), PermissionsExt::from_mode(0o777)).unwrap();
        }),
        ("the file is open", &|| {
            std::fs::set_permissions(installed.0.path(), PermissionsExt::from_mode(0o755)).unwrap();
            std::fs::set_permissions(installed.helper(), PermissionsExt::from_mode(0o775)).unwrap();
        }),
        ("a link leads elsewhere", &|| {
            let planted = tempfile::tempdir().unwrap().keep();
            std::fs::set_permissions(&planted, PermissionsExt::from_mode(0o755)).unwrap();
            let other = planted.join("perflens-record");
            std::fs::rename(installed.helper(), &other)
                .or_else(|_| std::fs::copy(recorder(), &other).map(drop))
                .unwrap();
            set_capabilities(&other);
            let _ = std::fs::remove_file(installed.helper());
            std::os::unix::fs::symlink(&other, installed.helper()).unwrap();
        }),
    ];
    for (what, open) in doors {
        open();
        let (ground, _) = Ground::c("hot");
        let output = installed.record(&ground, &["--", "./hot", "800"]);
        assert!(how(&output).starts_with("with copied stacks, own processes only"), "{what}: {}", output.stdout);
        assert!(how(&output).contains("could be replaced by others than root, so it gets no rights"), "{what}");
    }
    let planted = std::fs::canonicalize(installed.helper()).unwrap();
    std::fs::remove_dir_all(planted.parent().unwrap()).unwrap();
}

/// Runs perflens where root's rule for sudo is another one, in a mount namespace of its own.
fn record_by_sudo(installed: &Installed, ground: &Ground, rule: &str) -> Output {
    let rules = ground.path().join("sudoers");
    std::fs::write(&rules, format!("{rule}\n")).expect("a file");
    std::fs::set_permissions(&rules, PermissionsExt::from_mode(0o440)).expect("it is ours");
    record_elevated(installed, ground, "sudo", "mount --bind \"$0\" /etc/sudoers && exec \"$@\"", &rules)
}

/// The same for polkit, which is alone with a bus of its own there. `rule` is what it is to answer for the helper.
fn record_by_pkexec(installed: &Installed, ground: &Ground, rule: &str) -> Output {
    let rules = ground.path().join("rules.d");
    std::fs::create_dir(&rules).expect("a folder");
    let helper = installed.helper();
    let text = format!(
        "polkit.addRule(function(action, subject) {{ if (action.id == 'org.freedesktop.policykit.exec' && \
         action.lookup('program') == '{}' && subject.user == 'nobody') return polkit.Result.{rule}; }});",
        helper.display()
    );
    std::fs::write(rules.join("50-test.rules"), text).expect("a file");
    for path in [&rules, &rules.join("50-test.rules")] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("it is ours");
    }
    // The bus and polkit end with the process that is 1 of their namespace.
    let inside = "mount -t tmpfs none /run/dbus && mount --bind \"$0\" /etc/polkit-1/rules.d || exit 9
        dbus-daemon --system --nofork --nopidfile 2>/dev/null &
        for _ in $(seq 100); do [ -S /run/dbus/system_bus_socket ] && break; sleep 0.05; done
        /usr/lib/polkit-1/polkitd --no-debug 2>/dev/null &
        for _ in $(seq 100); do pkcheck --action-id org.freedesktop.policykit.exec --process 1 2>/dev/null && break; sleep 0.05; done
        \"$@\"";
    record_elevated(installed, ground, "pkexec", inside, &rules)
}

fn record_elevated(installed: &Installed, ground: &Ground, by: &str, inside: &str, rules: &Path) -> Output {
    let mut inner = ground.perflens_at(&installed.program(), User::Ordinary);
    inner.args(["record", "--elevate", by, "--frequency", "499", "-o"]).arg(ground.profile());
    inner.args(["--", "./hot", "2000"]);
    let mut command = Command::new("unshare");
    if by == "pkexec" {
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    }
    command.args(["--mount", "sh", "-c", inside]).arg(rules);
    command.arg(inner.get_program()).args(inner.get_args()).current_dir(ground.work());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    run(&mut command)
}

#[test]
fn sudo_makes_the_helper_root_for_one_recording() {
    let Some(installed) = Installed::new() else { return };
    let (ground, _) = Ground::c("hot");
    let rule = format!("nobody ALL=(root) NOPASSWD: {}", installed.helper().display());
    let output = record_by_sudo(&installed, &ground, &rule);
    assert_eq!(how(&output), "with eBPF and unwind tables");
    assert_hot(&ground);
}

#[test]
fn a_sudo_that_refuses_leaves_copied_stacks() {
    let Some(installed) = Installed::new() else { return };
    let (ground, _) = Ground::c("hot");
    let output = record_by_sudo(&installed, &ground, "root ALL=(ALL) ALL");
    expect!["with copied stacks, own processes only; eBPF is not used: sudo did not start the recorder; it asks for no password here: sudo -v before it"]
        .assert_eq(how(&output));
    assert_hot(&ground);
}

#[test]
fn pkexec_makes_the_helper_root_for_one_recording() {
    let Some(installed) = Installed::new() else { return };
    let (ground, _) = Ground::c("hot");
    let output = record_by_pkexec(&installed, &ground, "YES");
    assert_eq!(how(&output), "with eBPF and unwind tables");
    assert_hot(&ground);
}

#[test]
fn a_pkexec_that_refuses_leaves_copied_stacks() {
    let Some(installed) = Installed::new() else { return };
    let (ground, _) = Ground::c("hot");
    let output = record_by_pkexec(&installed, &ground, "NO");
    expect!["with copied stacks, own processes only; eBPF is not used: pkexec did not start the recorder"]
        .assert_eq(how(&output));
    assert_hot(&ground);
}
