//! JavaScript and TypeScript: tests of Node's own runner, vitest and jest.
//!
//! V8 tells lines to nobody but its own profiler, so that is what is used: `node --cpu-prof` of the one
//! process that has the tests. A test is an argument and mostly has no name of its own; the profile gives its
//! function the test's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::tokens::{self, Dialect, Token, tokens};
use super::{
    Kind, Language, Order, OwnProfiler, Plan, Runnable, Runner, Steps, Words, as_it_was, filters, folder_with,
    name_a_task,
};

pub(super) const LANGUAGE: Language = Language {
    name: "JavaScript",
    endings: &["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"],
    find,
    plan,
    again: as_it_was,
};

/// What a function of a test is called in its profile.
pub(super) fn title(name: &str) -> String {
    format!("test {name}")
}

fn find(path: &Path, text: &str) -> Vec<Runnable> {
    let tokens = tokens(text, Dialect::JavaScript);
    if !is_test_file(path, &tokens) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let kind = match token.text {
            "test" | "it" => Kind::Test,
            "bench" => Kind::Benchmark,
            _ => continue,
        };
        let is_member = at > 0 && (tokens[at - 1].is_sign(".") || tokens[at - 1].is_word("function"));
        if token.kind != tokens::Kind::Word || is_member {
            continue;
        }
        // `test.only(`, `test.concurrent(`.
        let open = match &tokens[at + 1..] {
            [dot, _, ..] if dot.is_sign(".") => at + 3,
            _ => at + 1,
        };
        let [bracket, name, ..] = &tokens[open.min(tokens.len())..] else { continue };
        if !bracket.is_sign("(") || name.kind != tokens::Kind::Text || name.text.contains("${") {
            continue;
        }
        let end = tokens::closing(&tokens, open);
        let Some(begins) = callback(&tokens[open + 1..end], bracket.depth + 1) else { continue };
        found.push(Runnable {
            kind,
            name: unescaped(name.text),
            runner: Runner::Own,
            line: token.line,
            first: token.line,
            last: tokens[end].line,
            begins,
        });
    }
    found
}

/// The line where the last argument that is a function begins.
fn callback(arguments: &[Token<'_>], depth: u32) -> Option<u32> {
    let is_comma = |token: &Token<'_>| token.depth == depth && token.is_sign(",");
    let is_function = |argument: &&[Token<'_>]| {
        argument.iter().any(|token| token.is_word("function"))
            || argument.windows(2).any(|pair| pair[0].is_sign("=") && pair[1].is_sign(">"))
    };
    arguments.rsplit(is_comma).find(is_function)?.first().map(|token| token.line)
}

/// A text as it is meant, as far as names of tests go.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    plain
}

/// Whether its calls of `test` are likely to be tests: by its name, or by what it imports.
fn is_test_file(path: &Path, tokens: &[Token<'_>]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let by_name = [".test.", ".spec.", ".bench."].iter().any(|part| name.contains(part))
        || path.iter().any(|part| part == "__tests__");
    by_name || imports(tokens, "node:test") || imports(tokens, "vitest")
}

fn imports(tokens: &[Token<'_>], module: &str) -> bool {
    tokens.windows(2).any(|pair| {
        let is_import = pair[0].is_word("from") || pair[0].is_sign("(") || pair[0].is_word("import");
        is_import && pair[1].kind == tokens::Kind::Text && pair[1].text == module
    })
}

fn plan(order: &Order, _: &mut dyn Steps) -> Result<Plan, String> {
    let folder = folder_with(order, &["package.json"]).unwrap_or_else(|| order.root.clone());
    let text = std::fs::read_to_string(&order.file).map_err(|error| format!("{}: {error}", order.file.display()))?;
    let is_node = imports(&tokens(&text, Dialect::JavaScript), "node:test");
    let name = &order.runnable.name;
    let jest = module_file(&folder, &order.root, "jest/bin/jest.js");
    let (command, ran_nothing): (Words, &'static [&'static str]) = if is_node {
        let run = Words::new("node", &folder);
        (run.arg(format!("--test-name-pattern=^{}$", pattern(name))).arg(&order.file), &["\n# pass 0\n# fail 0\n"])
    } else if let Some(jest) = jest {
        if !is_plain(&order.file, &text) {
            return Err(name_a_task(order, "jest writes it anew before it runs, and the lines of that are others"));
        }
        // Else it rewrites plain files as well, to let tests replace modules, and their lines are others.
        let run = Words::new("node", &folder).arg(jest).arg("--transform={}");
        let run = run.args(["--runInBand", "--watchAll=false", "--coverage=false", "--runTestsByPath"]);
        (run.arg(&order.file).arg(format!("--testNamePattern={}$", pattern(name))), &["0 passed"])
    } else {
        return Err(name_a_task(order, "it uses neither node:test nor jest"));
    };
    let file = order.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let own = OwnProfiler {
        name: "node --cpu-prof",
        because: Some("V8 tells lines to its own profiler alone"),
        has_samples: true,
        command: |words, folder| {
            let mut words = words.clone();
            let mut target = OsString::from("--cpu-prof-dir=");
            target.push(folder);
            words.arguments.splice(0..0, ["--cpu-prof".into(), target]);
            words
        },
        name_at: Some((format!("/{file}"), order.runnable.begins, title(name))),
    };
    let under = filters([format!("fn={}", title(name))]);
    Ok(Plan { under, own: Some(own), ran_nothing, ..Plan::new(command) })
}

/// Whether Node runs a file as it is, where jest does: neither TypeScript nor JSX, nor a module that imports.
fn is_plain(file: &Path, text: &str) -> bool {
    let is_script = file.extension().is_some_and(|ending| ending == "js" || ending == "cjs");
    let is_module = |token: &Token<'_>| token.depth == 0 && (token.is_word("import") || token.is_word("export"));
    is_script && !tokens(text, Dialect::JavaScript).iter().any(is_module)
}

/// A file of an installed package, of the project or a folder above it.
fn module_file(folder: &Path, root: &Path, file: &str) -> Option<PathBuf> {
    let folders = folder.ancestors().take_while(|above| above.starts_with(root));
    folders.map(|above| above.join("node_modules").join(file)).find(|path| path.is_file())
}

/// A text as a regular expression that is nothing but this text.
fn pattern(text: &str) -> String {
    let escaped = text.chars().flat_map(|letter| {
        let is_special = r"\^$.|?*+()[]{}/".contains(letter);
        is_special.then_some('\\').into_iter().chain([letter])
    });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::listed;
    use super::*;

    #[test]
    fn tests_are_calls_with_a_name_and_a_function() {
        let text = r#"import { test, describe } from "node:test";
// test("commented", () => {});
describe("outer", () => {
  test("sorts", { timeout: 5 }, async () => {
    it('isn\'t "slow"', function () {});
  });
});
test.only(
  `plain`,
  () => {
  },
);
test(`each ${x}`, () => {});
test("todo");
/re/.test("no", () => {});
x.it("neither", () => {});
const s = `test("in a text", () => {})`;
bench("sum", () => { });
"#;
        expect![[r#"
            4: test sorts at 4-6
            5: test isn't "slow" at 5-5
            8: test plain at 8-12
            18: benchmark sum at 18-18
        "#]]
        .assert_eq(&listed(Path::new("x.js"), text));
        let begins: Vec<u32> = find(Path::new("x.js"), text).iter().map(|found| found.begins + 1).collect();
        assert_eq!(begins, [4, 5, 10, 18]);
        assert_eq!(listed(Path::new("x.js"), "test('a', () => {})"), "");
        assert_eq!(listed(Path::new("x.test.ts"), "test('a', () => {})"), "1: test a at 1-1\n");
    }
}
