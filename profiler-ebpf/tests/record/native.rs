//! Native programs: complete stacks, known shares.

use profiler_ebpf::protocol::{Loss, Method, StackEnd, Start};

use crate::recording::{CC, Held, Programs, Recording, possible, start};

#[test]
fn c_without_frame_pointers() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("shares", "shares.c", CC);
    let mut recording = Recording::of(&program, &["1.5"], 999);
    recording.assert_complete();
    let (twice, once) = (recording.leaf_share("twice"), recording.leaf_share("once"));
    recording.assert_share("twice", twice / (twice + once) * 100.0, 200.0 / 3.0);
    let deep = recording.share(|names| {
        let chain: Vec<_> = names.iter().filter(|name| *name == "middle").collect();
        names[0] != "twice" || (chain.len() == 11 && names.contains(&"main".to_owned()))
    });
    recording.assert_share("stacks through the whole chain", deep, 100.0);
    let period = 1_000_000_000 / 999;
    assert!(recording.samples.iter().all(|sample| sample.value == period));
    // Samples stand for the CPU time that the program used.
    let seconds = recording.samples.len() as f64 / 999.0;
    assert!((1.3..1.9).contains(&seconds), "{seconds} s");
    // A machine whose host takes its CPUs away has fewer strokes of the clock: those are missed by nobody here.
    recording.lost.remove(&(Loss::Throttled as i32));
    assert!(recording.lost.is_empty(), "{:?}", recording.lost);
}

#[test]
fn a_signal_handlers_stack_leads_to_what_it_interrupted() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let mut recording = Recording::of(&program, &["signals"], 999);
    recording.assert_complete();
    let handled = recording.share(|names| names.contains(&"on_signal".into()));
    assert!(handled > 10.0, "{handled} %");
    let through = recording.share(|names| {
        let at = |wanted: &str| names.iter().position(|name| name == wanted);
        at("on_signal").is_none() || at("on_signal") < at("interrupted")
    });
    recording.assert_share("handlers above what they interrupted", through, 100.0);
    assert!(recording.samples.iter().any(|sample| !sample.exact.is_empty()));
}

#[test]
fn frames_of_unusual_shape() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("cases", "cases.c", CC);
    let mut recording = Recording::of(&program, &["aligned"], 999);
    recording.assert_complete();
    let through = recording.share(|names| names.iter().filter(|name| *name == "realigned").count() == 7);
    recording.assert_share("stacks through all frames", through, 100.0);
}

#[test]
fn rust_as_cargo_builds_it_for_release() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let rustc = ["rustc", "--edition=2024", "-O", "-C", "debuginfo=line-tables-only"];
    let program = programs.build("workload", "workload.rs", &rustc);
    let mut recording = Recording::of(&program, &["700"], 999);
    recording.assert_complete();
    for share in 1..=3_u32 {
        let name = format!("share-{share}");
        let tids: Vec<u32> =
            recording.threads.iter().filter(|(_, known)| **known == name).map(|thread| *thread.0).collect();
        assert_eq!(tids.len(), 1, "{:?}", recording.threads);
        let of = recording.samples.iter().filter(|sample| tids.contains(&sample.tid)).count();
        let percent = of as f64 * 100.0 / recording.samples.len() as f64;
        recording.assert_share(&name, percent, f64::from(share) * 100.0 / 6.0);
    }
    let rounds = recording.share(|names| names.iter().any(|name| name.contains("5round")));
    recording.assert_share("stacks through the round", rounds, 100.0);
    let polled = recording.share(|names| names.iter().any(|name| name.contains("recursive")));
    assert!(polled > 30.0, "{polled} %");
}

#[test]
fn exceptions_and_templates() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let program = programs.build("exceptions", "exceptions.cpp", &["g++", "-g", "-O2", "-fomit-frame-pointer"]);
    let mut recording = Recording::of(&program, &["60000"], 999);
    recording.assert_complete();
    let throwing = recording.share(|names| names.iter().any(|name| name.contains("thrower")));
    assert!(throwing > 5.0, "{throwing} %");
    let main = recording.share(|names| names.contains(&"main".into()));
    recording.assert_share("stacks through main, once libraries are linked", main, 98.0);
}

fn build_go(programs: &Programs, name: &str, cgo: bool) -> std::path::PathBuf {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs").join(name);
    let program = programs.path(name).with_extension("bin");
    let status = std::process::Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(source.join("main.go"))
        .env("CGO_ENABLED", if cgo { "1" } else { "0" })
        .env("GO111MODULE", "off")
        .status();
    assert!(status.is_ok_and(|status| status.success()), "go builds its program");
    program
}

#[test]
fn go_by_its_own_table() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let mut recording = Recording::of(&build_go(&programs, "go", false), &["6000"], 999);
    assert!(recording.processes.iter().any(|process| process.runtime == "go"), "{:?}", recording.processes);
    recording.assert_complete();
    // Also of a function without a frame, which keeps no frame pointer.
    let leaves = recording
        .share(|names| names[0] != "main.leaf" || names.iter().filter(|name| *name == "main.middle").count() == 9);
    recording.assert_share("stacks through all frames", leaves, 100.0);
}

#[test]
fn go_that_calls_c() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let mut recording = Recording::of(&build_go(&programs, "cgo", true), &["20000"], 999);
    recording.assert_complete();
    let c = recording.share(|names| names[0].ends_with("_burn"));
    assert!(c > 20.0, "{c} %");
    let go = recording.share(|names| names[0] == "main.leaf");
    assert!(go > 20.0, "{go} %");
    let through = recording.share(|names| {
        let working = names[0].ends_with("_burn") || names[0] == "main.leaf";
        !working || (names.contains(&"main.caller".into()) && names.contains(&"main.main".into()))
    });
    recording.assert_share("stacks through both", through, 100.0);
}

/// What older kernels get: whole stacks of programs that keep frame pointers, and no claim that they are whole.
#[test]
fn frame_pointers_where_tables_are_not_wanted() {
    if !possible() {
        return;
    }
    let programs = Programs::new();
    let keep = ["cc", "-g", "-O2", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];
    let program = programs.build("shares", "shares.c", &keep);
    let wanted = Start { method: Method::BpfFramePointers as i32, ..start(999) };
    let mut recording = Recording::of_held(Held::new(&program, &["1"]), wanted);
    assert_eq!(recording.hello.as_ref().unwrap().method, Method::BpfFramePointers as i32);
    let whole =
        recording.share(|names| names[0] != "twice" || names.iter().filter(|name| *name == "middle").count() == 11);
    recording.assert_share("stacks through the whole chain", whole, 100.0);
    assert!(recording.leaf_share("twice") > 40.0);
    assert!(recording.samples.iter().all(|sample| sample.end == StackEnd::Unknown as i32));
}
