//! Go: tests, benchmarks, examples, `main`.
//!
//! `go test -c` builds a program that is run without `go`. A benchmark's number of iterations is found out
//! first, without recording, and then held: two recordings of it do the same work.

use std::path::Path;

use super::tokens::{self, Dialect, tokens};
use super::{
    Iterations, Kind, Language, Order, OwnProfiler, Plan, Runnable, Runner, Steps, Words, filters, name_a_task,
};

pub(super) const LANGUAGE: Language = Language { name: "Go", endings: &["go"], find, plan, again };

/// How long a benchmark runs to find out how many iterations there are in a second.
const CALIBRATION: (&str, f64) = ("300ms", 0.3);

/// How long one run of a benchmark shall be, in seconds.
const RUN_SECONDS: f64 = 1.5;

fn find(path: &Path, text: &str) -> Vec<Runnable> {
    let is_test_file = path.file_name().is_some_and(|name| name.to_string_lossy().ends_with("_test.go"));
    let tokens = tokens(text, Dialect::Go);
    let package = tokens.iter().position(|token| token.is_word("package")).and_then(|at| tokens.get(at + 1));
    let is_program = package.is_some_and(|name| name.text == "main");
    let mut found = Vec::new();
    for (at, pair) in tokens.windows(3).enumerate() {
        let [func, name, open] = pair else { continue };
        if !func.is_word("func") || func.depth != 0 || name.kind != tokens::Kind::Word || !open.is_sign("(") {
            continue;
        }
        let kind = [("Test", Kind::Test), ("Benchmark", Kind::Benchmark), ("Example", Kind::Example)]
            .into_iter()
            .find(|(prefix, _)| is_test_file && is_named(name.text, prefix))
            .map(|(_, kind)| kind)
            .filter(|_| name.text != "TestMain")
            .or((name.text == "main" && is_program && !is_test_file).then_some(Kind::Main));
        let Some(kind) = kind else { continue };
        let body = (at..tokens.len()).find(|&index| tokens[index].depth == 0 && tokens[index].is_sign("{"));
        let last = body.map_or(func.line, |body| tokens[tokens::closing(&tokens, body)].line);
        found.push(Runnable {
            kind,
            name: name.text.to_owned(),
            runner: Runner::Own,
            line: name.line,
            first: func.line,
            last,
            begins: name.line,
        });
    }
    found
}

/// Whether `go test` takes a function for one of these: what follows the prefix does not begin with a small letter.
fn is_named(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| !rest.starts_with(char::is_lowercase))
}

fn plan(order: &Order, steps: &mut dyn Steps) -> Result<Plan, String> {
    let Some(folder) = order.file.parent() else { return Err(name_a_task(order, "it is in no folder")) };
    let name = &order.runnable.name;
    let program = steps.scratch().join(format!("{}.test", folder.file_name().unwrap_or_default().to_string_lossy()));
    let go = || Words::new("go", folder);
    if order.runnable.kind == Kind::Main {
        built(steps, &go().args(["build", "-o"]).arg(&program).arg("."))?;
        return Ok(Plan { repeats: false, is_built: true, ..Plan::new(Words::new(&program, folder)) });
    }
    built(steps, &go().args(["test", "-c", "-o"]).arg(&program).arg("."))?;
    if !program.is_file() {
        return Err(name_a_task(order, "`go test -c` made no program"));
    }
    let run = Words::new(&program, folder).arg("-test.count=1");
    let mut iterations = 0;
    let command = if order.runnable.kind == Kind::Benchmark {
        let run = run.arg("-test.run=^$").arg(format!("-test.bench=^{name}$"));
        iterations = match order.work.map(|work| work.iterations).filter(|&iterations| iterations > 0) {
            Some(iterations) => iterations,
            None => calibrate(&run, name, steps)?,
        };
        // Where nothing was told of it, as it chooses.
        let time = if iterations == 0 { "1s".to_owned() } else { format!("{iterations}x") };
        run.arg(format!("-test.benchtime={time}"))
    } else {
        run.arg(format!("-test.run=^{name}$"))
    };
    // Subtests run in goroutines of their own, which begin with closures that have its name at their beginning.
    let under = filters([format!("fn~.{name}")]);
    let ran_nothing = &["no tests to run"];
    let iterations = Iterations::Held(iterations);
    Ok(Plan { under, iterations, own: Some(own_profiler()), ran_nothing, is_built: true, ..Plan::new(command) })
}

fn own_profiler() -> OwnProfiler {
    OwnProfiler {
        name: "go test -cpuprofile",
        because: None,
        has_samples: true,
        command: |words, folder| {
            let mut flag = std::ffi::OsString::from("-test.cpuprofile=");
            flag.push(folder.join("cpu.pprof"));
            words.clone().arg(flag)
        },
        name_at: None,
    }
}

/// Its arguments say how many iterations it has.
fn again(order: &Order, plan: Plan, _: &Path) -> Plan {
    let own = (order.runnable.kind != Kind::Main).then(own_profiler);
    Plan { own, ..plan }
}

fn built(steps: &mut dyn Steps, words: &Words) -> Result<(), String> {
    let output = steps.build(words)?;
    if output.is_success {
        return Ok(());
    }
    // The first line is `# PACKAGE`.
    let lines = output.stderr.lines().map(str::trim);
    let why = lines.clone().find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_else(|| output.why());
    Err(format!("it does not build: {why}"))
}

/// How many iterations a run shall have.
fn calibrate(run: &Words, name: &str, steps: &mut dyn Steps) -> Result<u64, String> {
    let (time, seconds) = CALIBRATION;
    let output = steps.run(&run.clone().arg(format!("-test.benchtime={time}")))?;
    if !output.is_success {
        return Ok(0);
    }
    // As many of each of its sub-benchmarks, so that all of them take so long together.
    let one_of_each: f64 = iterations(&output.stdout, name).iter().map(|&count| seconds / count as f64).sum();
    if one_of_each <= 0.0 {
        return Ok(0);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
    Ok((RUN_SECONDS / one_of_each).ceil().max(1.0) as u64)
}

/// The iterations that the output of a benchmark tells: of itself, or of each of its sub-benchmarks.
fn iterations(output: &str, name: &str) -> Vec<u64> {
    let told = output.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let rest = words.next()?.strip_prefix(name)?;
        let is_its = rest.is_empty() || rest.starts_with(['-', '/']);
        is_its.then_some(words.next()?.parse().ok()?).filter(|&count| count > 0)
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::listed;
    use super::*;

    #[test]
    fn what_go_test_runs_is_found() {
        let text = "package a\n\nfunc TestX(t *testing.T) {\n\tfunc() { }()\n}\nfunc Testify() {}\nfunc Test(t *testing.T) {}\n\
                    func TestMain(m *testing.M) {}\nfunc (s *Suite) TestY() {}\nvar s = `\nfunc TestNo() {}\n`\n\
                    func BenchmarkÄ(b *testing.B) {\n}\nfunc Example_x() {\n}\nfunc helper() {}\nfunc main() {}\n";
        expect![[r#"
            3: test TestX at 3-5
            7: test Test at 7-7
            13: benchmark BenchmarkÄ at 13-14
            15: example Example_x at 15-16
        "#]]
        .assert_eq(&listed(Path::new("a_test.go"), text));
        assert_eq!(listed(Path::new("a.go"), text), "");
        let program = "// x\npackage main\n\nfunc main() {\n}\n";
        assert_eq!(listed(Path::new("main.go"), program), "4: program main at 4-5\n");
    }

    #[test]
    fn iterations_are_read_of_a_benchmark_and_of_those_in_it() {
        let output = "goos: linux\nBenchmarkSum-2   \t  120\t  9 ns/op\nPASS\n";
        assert_eq!(iterations(output, "BenchmarkSum"), [120]);
        assert_eq!(iterations("BenchmarkSum/a-2 5 9 ns/op\nBenchmarkSum/b-2 7 9 ns/op", "BenchmarkSum"), [5, 7]);
        assert!(iterations("BenchmarkSumAll-2 5 9 ns/op\nBenchmarkSum-2 0 9 ns/op", "BenchmarkSum").is_empty());
    }
}
