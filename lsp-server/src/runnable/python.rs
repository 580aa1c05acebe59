//! Python: tests of pytest and unittest, and what runs when a file is run.
//!
//! Tests are run by the interpreter of the project's virtual environment, or the one on the `PATH`. Lines
//! are seen with eBPF, from Python 3.11; otherwise `cProfile` tells functions.

use std::path::{Path, PathBuf};

use super::tokens::{self, Dialect, Token, tokens};
use super::{
    Kind, Language, Order, OwnProfiler, Plan, Runnable, Runner, Steps, Words, as_it_was, filters, folder_with,
};

pub(super) const LANGUAGE: Language = Language { name: "Python", endings: &["py"], find, plan, again: as_it_was };

/// Files that are at the top of a project.
const PROJECT: &[&str] = &["pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py"];

/// The oldest version whose lines are seen: 3 and this.
const LINES_SINCE: u32 = 11;

fn find(path: &Path, text: &str) -> Vec<Runnable> {
    let tokens = tokens(text, Dialect::Python);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_test_file = name.starts_with("test_") || name.ends_with("_test.py");
    let mut found = Vec::new();
    // Classes and functions that we are in, with their column; what a class is for tests.
    let mut blocks: Vec<(Block<'_>, u32)> = Vec::new();
    let mut first = None;
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        let begins_line = token.depth == 0 && (at == 0 || tokens[at - 1].line < token.line);
        if !begins_line {
            at += 1;
            continue;
        }
        blocks.retain(|&(_, column)| column < token.column);
        if token.is_sign("@") {
            first.get_or_insert(token.line);
            at += 1;
            continue;
        }
        let begin = first.take().unwrap_or(token.line);
        let keyword = if token.is_word("async") { at + 1 } else { at };
        let (Some(word), Some(name)) = (tokens.get(keyword), tokens.get(keyword + 1)) else { break };
        let last = || last_line(&tokens, keyword, token.column);
        if word.is_word("class") {
            blocks.push((Block::class(name.text, &tokens[keyword + 2..]), token.column));
        } else if word.is_word("def") {
            let runner = match blocks.as_slice() {
                [] if is_test_file => Some((Runner::Pytest, name.text.to_owned())),
                [(Block::TestCase(class), _)] => Some((Runner::Own, format!("{class}::{}", name.text))),
                [(Block::Plain(class), _)] if is_test_file && class.starts_with("Test") => {
                    Some((Runner::Pytest, format!("{class}::{}", name.text)))
                }
                _ => None,
            };
            if let Some((runner, full)) = runner.filter(|_| name.text.starts_with("test")) {
                found.push(Runnable {
                    kind: Kind::Test,
                    name: full,
                    runner,
                    line: name.line,
                    first: begin,
                    last: last(),
                    begins: name.line,
                });
            }
            blocks.push((Block::Function, token.column));
        } else if token.column == 0 && token.is_word("if") && is_main_check(&tokens[at + 1..]) {
            found.push(Runnable {
                kind: Kind::Main,
                name: "__main__".to_owned(),
                runner: Runner::Own,
                line: token.line,
                first: token.line,
                last: last(),
                begins: token.line,
            });
        }
        at += 1;
    }
    found
}

/// What lines are in.
enum Block<'t> {
    /// A class whose base says that it is one of unittest.
    TestCase(&'t str),
    Plain(&'t str),
    Function,
}

impl<'t> Block<'t> {
    /// A class, by what follows its name.
    fn class(name: &'t str, rest: &[Token<'t>]) -> Self {
        let has_bases = rest.first().is_some_and(|token| token.is_sign("("));
        let bases = if has_bases { &rest[..tokens::closing(rest, 0)] } else { &[] };
        if bases.iter().any(|token| token.text.ends_with("TestCase")) {
            Self::TestCase(name)
        } else {
            Self::Plain(name)
        }
    }
}

/// The last line of a block that begins at an index, by its column.
fn last_line(tokens: &[Token<'_>], at: usize, column: u32) -> u32 {
    let mut last = tokens[at].line;
    for pair in tokens[at..].windows(2) {
        let [before, token] = pair else { continue };
        if token.line > before.line && token.depth == 0 && token.column <= column {
            break;
        }
        last = token.line + u32::try_from(token.text.matches('\n').count()).unwrap_or(0);
    }
    last
}

/// `__name__ == "__main__"`, either way round.
fn is_main_check(rest: &[Token<'_>]) -> bool {
    let texts: Vec<&str> = rest.iter().take(4).map(|token| token.text).collect();
    matches!(texts.as_slice(), ["__name__", "=", "=", "__main__"] | ["__main__", "=", "=", "__name__"])
}

fn plan(order: &Order, steps: &mut dyn Steps) -> Result<Plan, String> {
    let folder = folder_with(order, PROJECT).unwrap_or_else(|| order.root.clone());
    let python = interpreter(&folder, &order.root);
    // What is first on the PATH may be a script that looks for the interpreter each time.
    let asked = "import sys; print(sys.executable); print(sys.version_info[1])";
    let asked = steps.run(&Words::new(&python, &folder).args(["-c", asked]))?;
    let mut told = asked.stdout.lines();
    let python = told.next().filter(|path| !path.is_empty()).map_or(python, PathBuf::from);
    let minor: u32 = told.next().and_then(|minor| minor.trim().parse().ok()).unwrap_or(0);
    if !asked.is_success {
        return Err(format!("Python can't be run: {}", asked.why()));
    }
    let relative = order.file.strip_prefix(&folder).unwrap_or(&order.file);
    let run = Words::new(&python, &folder);
    let name = &order.runnable.name;
    let command = match (order.runnable.kind, order.runnable.runner) {
        (Kind::Main, _) => run.arg(relative),
        (_, Runner::Pytest) => run.args(["-m", "pytest", "-q"]).arg(format!("{}::{name}", relative.display())),
        _ => {
            let module = relative.with_extension("");
            let parts: Vec<_> = module.iter().map(|part| part.to_string_lossy()).collect();
            run.args(["-m", "unittest", "-q"]).arg(format!("{}.{}", parts.join("."), name.replace("::", ".")))
        }
    };
    let is_main = order.runnable.kind == Kind::Main;
    let under = if is_main { Vec::new() } else { filters([format!("fn^{}", name.replace("::", "."))]) };
    let own = OwnProfiler {
        name: "cProfile",
        because: (minor < LINES_SINCE).then_some("eBPF sees lines of Python from 3.11"),
        has_samples: false,
        command: |words, folder| {
            let mut words = words.clone();
            let out = folder.join("profile.pstats");
            let before = ["-m".into(), "cProfile".into(), "-o".into(), out.into_os_string()];
            words.arguments.splice(0..0, before);
            words
        },
        name_at: None,
    };
    let ran_nothing = &["no tests ran", "Ran 0 tests"];
    Ok(Plan { under, repeats: !is_main, needs_bpf: true, own: Some(own), ran_nothing, ..Plan::new(command) })
}

/// The interpreter of the project.
fn interpreter(folder: &Path, root: &Path) -> PathBuf {
    let of_project = [folder, root].into_iter().flat_map(|folder| [folder.join(".venv"), folder.join("venv")]);
    let active = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let mut all = of_project.chain(active).map(|folder| folder.join("bin/python"));
    all.find(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("python3"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::listed;
    use super::*;

    #[test]
    fn tests_of_both_kinds_and_main_are_found() {
        let text = r#"
"""
def test_in_a_text(): pass
"""
import pytest

@pytest.mark.parametrize(
    "x", [1,
2])
def test_plain(x):
    def test_inner():
        pass
    s = """
not the end
"""
    return (1,
2)

class TestGroup:
    async def test_waits(self):
        pass

    class Deeper:
        def test_too_deep(self): pass

class Parsing(unittest.TestCase):
    def setUp(self): pass
    def test_parse(self):
        pass
    def helper(self): pass

class Other:
    def test_no(self): pass

def testing():
    pass

if __name__ == "__main__":
    unittest.main()
"#;
        expect![[r#"
            10: test test_plain (Pytest) at 7-17
            20: test TestGroup::test_waits (Pytest) at 20-21
            28: test Parsing::test_parse at 28-29
            35: test testing (Pytest) at 35-36
            38: program __main__ at 38-39
        "#]]
        .assert_eq(&listed(Path::new("test_x.py"), text));
        expect![[r#"
            28: test Parsing::test_parse at 28-29
            38: program __main__ at 38-39
        "#]]
        .assert_eq(&listed(Path::new("x.py"), text));
    }
}
