//! C and C++: there are too many ways to test, so nothing is guessed. Functions are found, so that the lens
//! of a task stands above the one it names.

use std::path::Path;

use super::tokens::{self, Dialect, tokens};
use super::{Kind, Language, Order, Plan, Runnable, Runner, Steps, as_it_was, name_a_task};

pub(super) const LANGUAGE: Language =
    Language { name: "C", endings: &["c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx"], find, plan, again: as_it_was };

fn find(_: &Path, text: &str) -> Vec<Runnable> {
    let tokens = tokens(text, Dialect::C);
    let mut found = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        let [name, open] = pair else { continue };
        let is_call = name.kind == tokens::Kind::Word && open.is_sign("(");
        if !is_call || matches!(name.text, "if" | "for" | "while" | "switch" | "catch" | "return" | "sizeof") {
            continue;
        }
        // NAME ( … ) { with nothing but words in between, as `const` or `noexcept`.
        let end = tokens::closing(&tokens, at + 1);
        let body = (end + 1..tokens.len()).find(|&index| tokens[index].kind != tokens::Kind::Word);
        let Some(body) = body.filter(|&body| tokens[body].is_sign("{") && tokens[body].depth == name.depth) else {
            continue;
        };
        let function = Runnable {
            kind: Kind::Function,
            name: name.text.to_owned(),
            runner: Runner::Own,
            line: name.line,
            first: name.line,
            last: tokens[tokens::closing(&tokens, body)].line,
            begins: name.line,
        };
        found.push(function);
    }
    found
}

fn plan(order: &Order, _: &mut dyn Steps) -> Result<Plan, String> {
    Err(name_a_task(order, "how it is run is not known"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::listed;
    use super::*;

    #[test]
    fn functions_are_found_where_they_are_defined() {
        let text = "#include <x.h>\nint declared(int);\nstatic int\nadd(int a)\n{\n  if (a) { call(a); }\n  return a;\n}\n\
                    namespace n { void C::method() const noexcept { } }\n";
        expect![[r#"
            4: function add at 4-8
            9: function method at 9-9
        "#]]
        .assert_eq(&listed(Path::new("x.cpp"), text));
    }
}
