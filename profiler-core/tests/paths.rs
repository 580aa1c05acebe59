//! Paths of profiles against workspaces on disk, through the front door.
//!
//! A workspace is written as text: `//- /ws/src/a.rs` starts a file, `//- /ws/lib -> /ws/src`
//! is a link, and all of it lives below a temporary folder that is written `$T`. A profile is
//! one path a line, followed by what it knows of the file:
//!
//! ```text
//! /build/src/a.rs | work@10:12 | max 40 | in /usr/bin/demo
//! ```
//!
//! are a function with its first line and a sampled one, the greatest line, and the binary.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use profiler_core::cancel::CancelFlag;
use profiler_core::paths::clean::clean;
use profiler_core::paths::{
    Case, FunctionEvidence, PathQuery, Resolution, Rule, Workspace, WorkspaceFile, WorkspaceOptions,
};
use profiler_core::profile::LineNo;
use tempfile::TempDir;

struct Fixture {
    folder: TempDir,
    roots: Vec<PathBuf>,
    options: WorkspaceOptions,
}

/// Files and links below a new folder; the workspace is `/ws` in it.
fn files(text: &str) -> Fixture {
    let folder = TempDir::new().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let mut file: Option<(PathBuf, String)> = None;
    let write = |file: Option<(PathBuf, String)>| {
        if let Some((path, text)) = file {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    };
    for line in text.lines().map(str::trim_start) {
        if let Some(header) = line.strip_prefix("//- ") {
            write(file.take());
            match header.split_once(" -> ") {
                Some((link, target)) => make_link(&below(&real, link), &below(&real, target)),
                None => file = Some((below(&real, header), String::new())),
            }
        } else if let Some((_, text)) = &mut file {
            writeln!(text, "{line}").unwrap();
        }
    }
    write(file);
    std::fs::create_dir_all(real.join("ws")).unwrap();
    Fixture {
        roots: vec![real.join("ws")],
        folder,
        options: WorkspaceOptions { case: Case::Sensitive, ..Default::default() },
    }
}

fn below(folder: &Path, path: &str) -> PathBuf {
    folder.join(path.trim_start_matches('/'))
}

#[cfg(unix)]
fn make_link(link: &Path, target: &Path) {
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(target, link).unwrap();
}

impl Fixture {
    fn folder(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn roots(mut self, roots: &[&str]) -> Self {
        self.roots = roots.iter().map(|root| below(&self.folder(), root)).collect();
        self
    }

    fn case(mut self, case: Case) -> Self {
        self.options.case = case;
        self
    }

    fn rule(mut self, from: &str, to: &str) -> Self {
        self.options.rules.push(Rule { from: from.to_owned(), to: to.to_owned() });
        self
    }

    fn open(&self) -> Workspace {
        Workspace::open(&self.roots, &self.options, &CancelFlag::new())
    }

    /// Every path of the profile with what it is resolved to, in the given order.
    fn check(&self, profile: &str, want: Expect) {
        let workspace = self.open();
        assert_eq!(workspace.notes(), []);
        want.assert_eq(&self.show(&workspace, profile));
    }

    fn show(&self, workspace: &Workspace, profile: &str) -> String {
        let folder = self.folder();
        let folder = folder.to_str().unwrap();
        let lines: Vec<&str> = profile.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let paths: Vec<String> = lines
            .iter()
            .map(|line| clean(&line.split(" | ").next().unwrap().replace("$T", folder)).into_owned())
            .collect();
        let queries: Vec<PathQuery<'_>> =
            lines.iter().zip(&paths).map(|(line, path)| query(path, line.split(" | ").skip(1))).collect();
        let resolutions = workspace.resolve(&queries);
        let mut backwards: Vec<PathQuery<'_>> = queries.clone();
        backwards.reverse();
        let mut again = workspace.resolve(&backwards);
        again.reverse();
        assert_eq!(resolutions, again, "the order of the queries must not matter");
        let text: String = lines
            .iter()
            .zip(&resolutions)
            .map(|(line, resolution)| {
                let path = line.split(" | ").next().unwrap();
                format!("{path} → {}\n", self.tell(resolution))
            })
            .collect();
        text.replace(folder, "$T")
    }

    fn tell(&self, resolution: &Resolution) -> String {
        let list = |files: &[WorkspaceFile]| files.iter().map(|file| self.name(file)).collect::<Vec<_>>().join(", ");
        match resolution {
            Resolution::File { file, how, score, generated } => {
                assert_eq!(file.path, self.roots[file.root].join(&file.relative));
                let generated = if *generated { ", generated" } else { "" };
                format!("{} ({how}, {score}{generated})", self.name(file))
            }
            Resolution::Ambiguous { candidates } => format!("ambiguous: {}", list(candidates)),
            Resolution::Outside { kind, file } => {
                let file = file.as_ref().map(|file| format!(" at {}", file.display())).unwrap_or_default();
                format!("outside: {kind}{file}")
            }
            Resolution::NoMatch { reason, possible } if possible.is_empty() => format!("no match: {reason}"),
            Resolution::NoMatch { reason, possible } => format!("no match: {reason}; possible: {}", list(possible)),
        }
    }

    fn name(&self, file: &WorkspaceFile) -> String {
        if self.roots.len() == 1 { file.relative.clone() } else { format!("{}:{}", file.root, file.relative) }
    }
}

fn query<'a>(path: &'a str, facts: impl Iterator<Item = &'a str>) -> PathQuery<'a> {
    let mut query = PathQuery { path, ..PathQuery::default() };
    for fact in facts {
        if let Some(line) = fact.strip_prefix("max ") {
            query.max_line = line.parse().unwrap();
        } else if let Some(binary) = fact.strip_prefix("in ") {
            query.binary = Some(binary);
        } else {
            let (name, lines) = fact.rsplit_once('@').unwrap();
            let (start, line) = lines.split_once(':').unwrap();
            let line_no = |text: &str| LineNo(text.parse().unwrap());
            query.functions.push(FunctionEvidence { name, start_line: line_no(start), line: line_no(line) });
        }
    }
    query
}

// Cases that went wrong elsewhere.

#[test]
fn a_gopath_in_a_container_matches_by_its_end() {
    files("//- /ws/postgres/init.go\n//- /ws/redis/init.go").check(
        "/go/src/github.com/o/repo/postgres/init.go",
        expect![[r#"
            /go/src/github.com/o/repo/postgres/init.go → postgres/init.go (by suffix postgres/init.go, 0.70)
        "#]],
    );
}

#[test]
fn a_trimmed_go_path_is_the_workspace_or_the_module_cache() {
    files(
        "//- /ws/go.mod
        module example.com/a
        //- /ws/x/y.go
        //- /ws/cache.go
        //- /ws/ristretto/cache.go",
    )
    .check(
        "example.com/a/x/y.go
        github.com/dgraph-io/ristretto@v0.1.0/cache.go",
        expect![[r#"
            example.com/a/x/y.go → x/y.go (module example.com/a, 0.95)
            github.com/dgraph-io/ristretto@v0.1.0/cache.go → outside: dependency github.com/dgraph-io/ristretto v0.1.0
        "#]],
    );
}

#[test]
fn a_container_prefix_needs_a_folder_or_the_functions() {
    files(
        "//- /ws/scrape/scrape.go
        //- /ws/retrieval/scrape.go
        //- /ws/once.go
        package main

        func rescue() {
        }",
    )
    .check(
        "/app/scrape/scrape.go
        /app/scrape.go
        /app/once.go
        /srv/once.go | main.rescue@3:4
        /opt/once.go | main.main@3:4",
        expect![[r#"
            /app/scrape/scrape.go → scrape/scrape.go (by suffix scrape/scrape.go, 0.70)
            /app/scrape.go → no match: only the file name agrees; possible: retrieval/scrape.go, scrape/scrape.go
            /app/once.go → no match: only the file name agrees; possible: once.go
            /srv/once.go → once.go (only file of that name, functions agree, 0.75)
            /opt/once.go → no match: only the file name agrees; possible: once.go
        "#]],
    );
}

#[test]
fn a_vendored_file_is_known_but_not_the_workspaces_own() {
    files(
        "//- /ws/go.mod
        module example.com/a
        //- /ws/vendor/x/y.go
        //- /ws/vendor/github.com/o/lib/sub/z.go
        //- /ws/sub/z.go",
    )
    .check(
        "/root/go/src/example.com/a/vendor/x/y.go
        /root/go/src/example.com/a/vendor/github.com/o/lib/sub/z.go
        github.com/o/lib@v1.2.3/sub/z.go
        $T/ws/vendor/x/y.go
        /root/go/src/example.com/a/vendor/gone/z.go",
        expect![[r#"
            /root/go/src/example.com/a/vendor/x/y.go → outside: dependency x at $T/ws/vendor/x/y.go
            /root/go/src/example.com/a/vendor/github.com/o/lib/sub/z.go → outside: dependency github.com/o/lib at $T/ws/vendor/github.com/o/lib/sub/z.go
            github.com/o/lib@v1.2.3/sub/z.go → outside: dependency github.com/o/lib v1.2.3 at $T/ws/vendor/github.com/o/lib/sub/z.go
            $T/ws/vendor/x/y.go → outside: dependency x at $T/ws/vendor/x/y.go
            /root/go/src/example.com/a/vendor/gone/z.go → outside: dependency gone
        "#]],
    );
}

#[test]
fn any_unknown_head_can_be_stripped() {
    files("//- /ws/src/lib.rs\n//- /ws/src/panicking.rs").check(
        "<WORKSPACE>/src/lib.rs
        <RUSTUP_HOME>/toolchains/1.80.0-x86_64-unknown-linux-gnu/lib/rustlib/src/rust/library/core/src/panicking.rs",
        expect![[r#"
            <WORKSPACE>/src/lib.rs → src/lib.rs (by suffix src/lib.rs, 0.70)
            <RUSTUP_HOME>/toolchains/1.80.0-x86_64-unknown-linux-gnu/lib/rustlib/src/rust/library/core/src/panicking.rs → outside: toolchain rust 1.80.0-x86_64-unknown-linux-gnu
        "#]],
    );
}

#[test]
fn the_standard_library_is_never_a_file_of_the_same_name() {
    files("//- /ws/src/panicking.rs\n//- /ws/core/src/panicking.rs").check(
        "/rustc/9bc8c42bb2f19e745a63f3445f1ac248fb015e53/library/core/src/panicking.rs
        /home/dev/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/lib/rustlib/src/rust/library/core/src/panicking.rs
        library/core/src/panicking.rs",
        expect![[r#"
            /rustc/9bc8c42bb2f19e745a63f3445f1ac248fb015e53/library/core/src/panicking.rs → outside: toolchain rust 9bc8c42bb2f19e745a63f3445f1ac248fb015e53
            /home/dev/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/lib/rustlib/src/rust/library/core/src/panicking.rs → outside: toolchain rust stable-x86_64-unknown-linux-gnu
            library/core/src/panicking.rs → outside: toolchain rust
        "#]],
    );
}

#[test]
fn mixed_separators_are_one() {
    files("//- /ws/src/bin/main.rs").check(
        r"src\bin/main.rs
        C:\Users\x\.cargo\registry/src\index.crates.io-6f17d22bba15001f\serde-1.0.200\src\lib.rs",
        expect![[r#"
            src\bin/main.rs → src/bin/main.rs (by suffix src/bin/main.rs, 0.80)
            C:\Users\x\.cargo\registry/src\index.crates.io-6f17d22bba15001f\serde-1.0.200\src\lib.rs → outside: dependency serde 1.0.200
        "#]],
    );
}

#[test]
fn bazel_runs_in_the_workspace() {
    files("//- /ws/main/hello.cc\n//- /ws/other/main/hello.cc").check(
        "/proc/self/cwd/main/hello.cc
        /home/dev/bin/tool.runfiles/_main/main/hello.cc",
        expect![[r#"
            /proc/self/cwd/main/hello.cc → main/hello.cc (path in the Bazel workspace, 0.95)
            /home/dev/bin/tool.runfiles/_main/main/hello.cc → main/hello.cc (path in the Bazel workspace, 0.95)
        "#]],
    );
}

#[test]
fn the_sandbox_of_a_dead_build_is_the_workspace() {
    let sandbox = "/home/dev/.cache/bazel/_bazel_dev/0a1b/sandbox/linux-sandbox/9/execroot/_main";
    files("//- /ws/pkg/a.c\n//- /ws/dep/a.c\n//- /ws/pkg/gen.txt").check(
        &format!(
            "{sandbox}/pkg/a.c
            {sandbox}/external/dep/a.c
            {sandbox}/external/zlib~1.3.1/deflate.c
            {sandbox}/bazel-out/k8-fastbuild/bin/pkg/gen.h
            bazel-out/k8-fastbuild/bin/external/dep/gen.h"
        ),
        expect![[r#"
            /home/dev/.cache/bazel/_bazel_dev/0a1b/sandbox/linux-sandbox/9/execroot/_main/pkg/a.c → pkg/a.c (path in the Bazel workspace, 0.95)
            /home/dev/.cache/bazel/_bazel_dev/0a1b/sandbox/linux-sandbox/9/execroot/_main/external/dep/a.c → outside: dependency dep
            /home/dev/.cache/bazel/_bazel_dev/0a1b/sandbox/linux-sandbox/9/execroot/_main/external/zlib~1.3.1/deflate.c → outside: dependency zlib 1.3.1
            /home/dev/.cache/bazel/_bazel_dev/0a1b/sandbox/linux-sandbox/9/execroot/_main/bazel-out/k8-fastbuild/bin/pkg/gen.h → outside: generated by Bazel
            bazel-out/k8-fastbuild/bin/external/dep/gen.h → outside: dependency dep
        "#]],
    );
}

#[test]
fn a_rule_applies_only_where_it_leads_to_a_file() {
    files("//- /ws/pkg/a.cc\n//- /ws/src/pkg/b.cc\n//- /ws/deep/c.cc")
        .rule("/proc/self/cwd", "src")
        .rule("/proc/self/cwd/x", "deep")
        .rule("/one/file.cc", "pkg/a.cc")
        .check(
            "pkg/a.cc
            /proc/self/cwd/pkg/a.cc
            /proc/self/cwd/pkg/b.cc
            /proc/self/cwd/x/c.cc
            /proc/self/cwdx/c.cc
            /one/file.cc",
            expect![[r#"
                pkg/a.cc → pkg/a.cc (by suffix pkg/a.cc, 0.70)
                /proc/self/cwd/pkg/a.cc → pkg/a.cc (path in the Bazel workspace, 0.95)
                /proc/self/cwd/pkg/b.cc → src/pkg/b.cc (rule /proc/self/cwd → src, 1.00)
                /proc/self/cwd/x/c.cc → deep/c.cc (rule /proc/self/cwd/x → deep, 1.00)
                /proc/self/cwdx/c.cc → no match: only the file name agrees; possible: deep/c.cc
                /one/file.cc → pkg/a.cc (rule /one/file.cc → pkg/a.cc, 1.00)
            "#]],
        );
}

#[test]
fn a_bare_name_needs_the_functions() {
    files(
        "//- /ws/src/cupperscan.cpp
        #include <x>

        void scan(int n) {
        }",
    )
    .check(
        "cupperscan.cpp | scan(int)@3:4
        CUPPERSCAN.cpp | scan(int)@3:4",
        expect![[r#"
            cupperscan.cpp → src/cupperscan.cpp (only file of that name, functions agree, 0.75)
            CUPPERSCAN.cpp → no match: no file of that name in the workspace
        "#]],
    );
    files("//- /ws/src/cupperscan.cpp").check(
        "cupperscan.cpp",
        expect![[r#"
        cupperscan.cpp → no match: only the file name agrees; possible: src/cupperscan.cpp
    "#]],
    );
}

#[test]
fn an_absolute_name_behind_the_folder_of_compilation_wins() {
    files("//- /C:/git/src/main.cpp").roots(&["/C:/git"]).check(
        "/c/git/build/C:/git/src/main.cpp\n/c/git/src/main.cpp\n/mnt/c/git/src/main.cpp",
        expect![[r#"
            /c/git/build/C:/git/src/main.cpp → src/main.cpp (exact path, 1.00)
            /c/git/src/main.cpp → src/main.cpp (exact path, 1.00)
            /mnt/c/git/src/main.cpp → src/main.cpp (exact path, 1.00)
        "#]],
    );
}

#[test]
fn a_slash_before_the_drive_is_nothing() {
    files("//- /C:/ws/a.cpp").roots(&["/C:/ws"]).check(
        r"/C:\ws\a.cpp",
        expect![[r#"
        /C:\ws\a.cpp → a.cpp (exact path, 1.00)
    "#]],
    );
}

#[test]
fn two_files_of_one_name_are_ambiguous() {
    files("//- /ws/a/mod.rs\n//- /ws/b/mod.rs").check(
        "mod.rs\n/build/c/mod.rs\n/build/b/mod.rs",
        expect![[r#"
        mod.rs → ambiguous: a/mod.rs, b/mod.rs
        /build/c/mod.rs → no match: only the file name agrees; possible: a/mod.rs, b/mod.rs
        /build/b/mod.rs → b/mod.rs (by suffix b/mod.rs, 0.70)
    "#]],
    );
}

#[test]
fn a_volume_may_be_blind_to_case() {
    let profile = "C:/work/Go/a.go\nfile:///c%3A/work/go/a.go";
    files("//- /C:/work/go/a.go").roots(&["/C:/work/go"]).case(Case::Blind).check(
        profile,
        expect![[r#"
        C:/work/Go/a.go → a.go (exact path, 1.00)
        file:///c%3A/work/go/a.go → a.go (exact path, 1.00)
    "#]],
    );
    files("//- /C:/work/go/a.go").roots(&["/C:/work/go"]).check(
        profile,
        expect![[r#"
        C:/work/Go/a.go → no match: only the file name agrees; possible: a.go
        file:///c%3A/work/go/a.go → a.go (exact path, 1.00)
    "#]],
    );
}

#[test]
fn case_merges_two_spellings_only_on_a_blind_volume() {
    let profile = "/app/Utils/helpers.py\n/app/utils/helpers.py";
    files("//- /ws/utils/helpers.py").case(Case::Blind).check(profile, expect![[r#"
        /app/Utils/helpers.py → utils/helpers.py (prefix /app/ → ., 0.90)
        /app/utils/helpers.py → utils/helpers.py (prefix /app/ → ., 0.90)
    "#]]);
    files("//- /ws/utils/helpers.py").check(
        profile,
        expect![[r#"
        /app/Utils/helpers.py → no match: only the file name agrees; possible: utils/helpers.py
        /app/utils/helpers.py → utils/helpers.py (by suffix utils/helpers.py, 0.70)
    "#]],
    );
    files("//- /ws/utils/helpers.py\n//- /ws/Utils/helpers.py").check(
        profile,
        expect![[r#"
        /app/Utils/helpers.py → Utils/helpers.py (prefix /app/ → ., 0.90)
        /app/utils/helpers.py → utils/helpers.py (prefix /app/ → ., 0.90)
    "#]],
    );
}

#[cfg(unix)]
#[test]
fn a_workspace_behind_a_link_has_two_names() {
    let text = "//- /private/var/ws/src/a.c\n//- /var -> /private/var";
    let profile = "$T/private/var/ws/src/a.c\n$T/var/ws/src/a.c";
    files(text).roots(&["/var/ws"]).check(
        profile,
        expect![[r#"
        $T/private/var/ws/src/a.c → src/a.c (exact path, 1.00)
        $T/var/ws/src/a.c → src/a.c (exact path, 1.00)
    "#]],
    );
    files(text).roots(&["/private/var/ws"]).check(
        profile,
        expect![[r#"
        $T/private/var/ws/src/a.c → src/a.c (exact path, 1.00)
        $T/var/ws/src/a.c → src/a.c (exact path, 1.00)
    "#]],
    );
}

#[cfg(unix)]
#[test]
fn a_linked_package_is_one_file_under_two_names() {
    let fixture = files(
        r#"//- /ws/packages/pkg/package.json
        {"name": "@org/pkg"}
        //- /ws/packages/pkg/a.ts
        //- /ws/node_modules/@org/pkg -> /ws/packages/pkg
        //- /ws/node_modules/left-pad/index.js"#,
    );
    fixture.check(
        "$T/ws/packages/pkg/a.ts
        $T/ws/node_modules/@org/pkg/a.ts
        /app/node_modules/@org/pkg/a.ts
        $T/ws/node_modules/left-pad/index.js
        /app/node_modules/left-pad/index.js",
        expect![[r#"
            $T/ws/packages/pkg/a.ts → packages/pkg/a.ts (exact path, 1.00)
            $T/ws/node_modules/@org/pkg/a.ts → packages/pkg/a.ts (exact path, 1.00)
            /app/node_modules/@org/pkg/a.ts → packages/pkg/a.ts (package @org/pkg, 0.95)
            $T/ws/node_modules/left-pad/index.js → outside: dependency left-pad at $T/ws/node_modules/left-pad/index.js
            /app/node_modules/left-pad/index.js → outside: dependency left-pad at $T/ws/node_modules/left-pad/index.js
        "#]],
    );
    let workspace = fixture.open();
    let at = |path: &str| workspace.file_at(&below(&fixture.folder(), path)).map(|file| file.relative);
    assert_eq!(at("/ws/packages/pkg/a.ts").as_deref(), Some("packages/pkg/a.ts"));
    assert_eq!(at("/ws/node_modules/@org/pkg/a.ts").as_deref(), Some("packages/pkg/a.ts"));
    assert_eq!(at("/ws/missing.ts"), None);
}

// Ecosystems.

const GO: &str = "
    //- /ws/go.mod
    module example.com/demo

    require (
        example.org/hashdep/v2 v2.1.3 // the hash
        example.org/near v0.0.0
    )

    replace example.org/near => ./third/near
    //- /ws/main.go
    package main

    func main() {
    }
    //- /ws/internal/work/work.go
    package work

    func Sum() {
    }
    //- /ws/other/work.go
    package other
    //- /ws/runtime/proc.go
    package runtime
    //- /ws/third/near/near.go
    package near
    //- /ws/gen/parser.go
    // Code generated by goyacc. DO NOT EDIT.
    package gen
    //- /ws/api/api.pb.go
    package api";

#[test]
fn go_on_the_machine_that_built_it() {
    files(GO).check(
        "$T/ws/main.go
        $T/ws/gen/parser.go
        $T/ws/api/api.pb.go
        /home/dev/go/pkg/mod/example.org/hashdep/v2@v2.1.3/mix/mix.go
        /home/dev/go/pkg/mod/github.com/!burnt!sushi/toml@v1.2.0/decode.go
        /home/dev/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.22.1.linux-amd64/src/runtime/proc.go
        /usr/local/go/src/runtime/proc.go
        /opt/hostedtoolcache/go/1.22.1/x64/src/net/http/server.go
        /nix/store/0a1b-go/share/go/src/sync/mutex.go
        <autogenerated>
        _cgo_gotypes.go",
        expect![[r#"
            $T/ws/main.go → main.go (exact path, 1.00)
            $T/ws/gen/parser.go → gen/parser.go (exact path, 1.00, generated)
            $T/ws/api/api.pb.go → api/api.pb.go (exact path, 1.00, generated)
            /home/dev/go/pkg/mod/example.org/hashdep/v2@v2.1.3/mix/mix.go → outside: dependency example.org/hashdep/v2 v2.1.3
            /home/dev/go/pkg/mod/github.com/!burnt!sushi/toml@v1.2.0/decode.go → outside: dependency github.com/BurntSushi/toml v1.2.0
            /home/dev/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.22.1.linux-amd64/src/runtime/proc.go → outside: toolchain go 1.22.1
            /usr/local/go/src/runtime/proc.go → outside: toolchain go
            /opt/hostedtoolcache/go/1.22.1/x64/src/net/http/server.go → outside: toolchain go 1.22.1
            /nix/store/0a1b-go/share/go/src/sync/mutex.go → outside: toolchain go
            <autogenerated> → no match: not a file
            _cgo_gotypes.go → outside: generated by cgo
        "#]],
    );
}

#[test]
fn go_with_trimmed_paths() {
    files(GO).check(
        "example.com/demo/main.go | main.main@3:4
        example.com/demo/internal/work/work.go
        example.org/hashdep/v2@v2.1.3/mix/mix.go
        example.org/near/near.go
        example.org/near@v0.0.0/near.go
        runtime/proc.go | runtime.schedule@3000:3050
        runtime/sema.go | sync.runtime_Semacquire@60:62
        internal/work/work.go | example.com/demo/internal/work.Sum@3:4
        vendor/golang.org/x/net/http2/hpack/encode.go | vendor/golang.org/x/net/http2/hpack.(*Encoder).WriteField@1:2
        net/http/server.go",
        expect![[r#"
            example.com/demo/main.go → main.go (module example.com/demo, 1.00)
            example.com/demo/internal/work/work.go → internal/work/work.go (module example.com/demo, 0.95)
            example.org/hashdep/v2@v2.1.3/mix/mix.go → outside: dependency example.org/hashdep/v2 v2.1.3
            example.org/near/near.go → third/near/near.go (module example.org/near, 0.95)
            example.org/near@v0.0.0/near.go → third/near/near.go (module example.org/near, 0.95)
            runtime/proc.go → outside: toolchain go
            runtime/sema.go → outside: toolchain go
            internal/work/work.go → internal/work/work.go (module example.com/demo, 1.00)
            vendor/golang.org/x/net/http2/hpack/encode.go → outside: toolchain go
            net/http/server.go → outside: toolchain go
        "#]],
    );
}

#[test]
fn go_built_elsewhere_is_known_by_its_packages() {
    files(GO).check(
        "/home/dev/src/demo/main.go | main.main@3:4
        /home/dev/src/demo/internal/work/work.go | example.com/demo/internal/work.Sum@3:4
        /home/dev/src/lib/other/work.go | example.com/lib/other.Sum@3:4
        /weird/place/src/runtime/proc.go | runtime.schedule@3000:3050
        /go/src/example.com/demo/gen/parser.go",
        expect![[r#"
            /home/dev/src/demo/main.go → main.go (prefix /home/dev/src/demo/ → ., 0.95)
            /home/dev/src/demo/internal/work/work.go → internal/work/work.go (module example.com/demo, 1.00)
            /home/dev/src/lib/other/work.go → outside: dependency example.com/lib/other
            /weird/place/src/runtime/proc.go → outside: toolchain go
            /go/src/example.com/demo/gen/parser.go → gen/parser.go (module example.com/demo, 0.95, generated)
        "#]],
    );
}

#[test]
fn go_work_and_nested_modules() {
    files(
        "//- /ws/go.work
        go 1.24
        use (
            ./a
            ./b
        )
        //- /ws/a/go.mod
        module example.com/mono
        //- /ws/a/x/x.go
        //- /ws/b/go.mod
        module example.com/mono/x/v2
        //- /ws/b/x.go
        //- /ws/b/y.go",
    )
    .check(
        "example.com/mono/x/x.go
        example.com/mono/x/v2/y.go
        example.com/mono/x/y.go
        /root/go/pkg/mod/example.com/mono/x/v2@v2.0.1/x.go
        example.com/monolith/x/x.go",
        expect![[r#"
            example.com/mono/x/x.go → b/x.go (module example.com/mono/x/v2, 0.95)
            example.com/mono/x/v2/y.go → b/y.go (module example.com/mono/x/v2, 0.95)
            example.com/mono/x/y.go → b/y.go (module example.com/mono/x/v2, 0.95)
            /root/go/pkg/mod/example.com/mono/x/v2@v2.0.1/x.go → b/x.go (module example.com/mono/x/v2, 0.95)
            example.com/monolith/x/x.go → outside: dependency example.com/monolith/x
        "#]],
    );
}

#[test]
fn rust_crates() {
    files(
        "//- /ws/Cargo.toml
        [workspace]
        members = [\"a\", \"b-c\"]
        [workspace.package]
        version = \"1.2.3\"
        //- /ws/a/Cargo.toml
        [package]
        name = \"a\"
        version.workspace = true
        //- /ws/a/src/lib.rs
        pub fn work() {}
        //- /ws/b-c/Cargo.toml
        [package]
        name = \"b-c\"
        version = \"0.1.0\"
        //- /ws/b-c/src/lib.rs
        pub fn rest() {}
        //- /ws/target/CACHEDIR.TAG
        //- /ws/target/release/build/a-0123456789abcdef/out/bindings.rs",
    )
    .check(
        "a/src/lib.rs
        src/lib.rs
        src/lib.rs | b_c::rest@1:1
        /cargo/registry/src/index.crates.io-6f17d22bba15001f/a-1.2.3/src/lib.rs
        /cargo/registry/src/index.crates.io-6f17d22bba15001f/a-1.0.0/src/lib.rs
        /root/.cargo/git/checkouts/tokio-0a1b2c3d4e5f6071/9a8b7c6/a/src/lib.rs
        serde-1.0.200/src/lib.rs
        /rust/deps/hashbrown-0.14.3/src/raw/mod.rs
        /build/target/release/build/a-0123456789abcdef/out/bindings.rs
        /build/target/release/build/a-fedcba9876543210/out/bindings.rs
        /build/vendor/serde/src/lib.rs",
        expect![[r#"
            a/src/lib.rs → a/src/lib.rs (by suffix a/src/lib.rs, 0.80)
            src/lib.rs → ambiguous: a/src/lib.rs, b-c/src/lib.rs
            src/lib.rs → b-c/src/lib.rs (crate b-c, 1.00)
            /cargo/registry/src/index.crates.io-6f17d22bba15001f/a-1.2.3/src/lib.rs → a/src/lib.rs (crate a 1.2.3, 0.95)
            /cargo/registry/src/index.crates.io-6f17d22bba15001f/a-1.0.0/src/lib.rs → outside: dependency a 1.0.0
            /root/.cargo/git/checkouts/tokio-0a1b2c3d4e5f6071/9a8b7c6/a/src/lib.rs → outside: dependency tokio 9a8b7c6
            serde-1.0.200/src/lib.rs → outside: dependency serde 1.0.200
            /rust/deps/hashbrown-0.14.3/src/raw/mod.rs → outside: dependency hashbrown 0.14.3
            /build/target/release/build/a-0123456789abcdef/out/bindings.rs → outside: generated by the build script of a at $T/ws/target/release/build/a-0123456789abcdef/out/bindings.rs
            /build/target/release/build/a-fedcba9876543210/out/bindings.rs → outside: generated by the build script of a
            /build/vendor/serde/src/lib.rs → outside: dependency serde
        "#]],
    );
}

#[test]
fn c_and_the_system() {
    files(
        "//- /ws/src/util.c
        int helper(void) {}
        //- /ws/sysdeps/x86_64/start.S
        //- /ws/include/c++/12/bits/stl_vector.h",
    )
    .check(
        "../../src/util.c
        ./csu/../sysdeps/x86_64/start.S
        /build/glibc-B9XyZc/glibc-2.35/src/util.c
        /usr/src/debug/openssl-3.0.2-1.fc36.x86_64/src/util.c
        /nix/store/0a1b2c-zlib-1.3.1/src/util.c
        /usr/include/c++/12/bits/stl_vector.h
        src/util.c | in /usr/lib/x86_64-linux-gnu/libz.so.1
        malloc/malloc.c | in /usr/lib/x86_64-linux-gnu/libc.so.6",
        expect![[r#"
            ../../src/util.c → src/util.c (by suffix src/util.c, 0.70)
            ./csu/../sysdeps/x86_64/start.S → outside: toolchain glibc
            /build/glibc-B9XyZc/glibc-2.35/src/util.c → outside: toolchain glibc 2.35
            /usr/src/debug/openssl-3.0.2-1.fc36.x86_64/src/util.c → outside: dependency openssl 3.0.2-1.fc36.x86_64
            /nix/store/0a1b2c-zlib-1.3.1/src/util.c → outside: dependency zlib 1.3.1
            /usr/include/c++/12/bits/stl_vector.h → outside: toolchain libstdc++ 12
            src/util.c → outside: dependency libz.so.1
            malloc/malloc.c → outside: toolchain glibc
        "#]],
    );
}

#[test]
fn python_files() {
    files(
        "//- /ws/pkg/load.py
        import os

        def load():
            pass
        //- /ws/json/decoder.py
        //- /ws/requests/api.py
        //- /ws/.venv/pyvenv.cfg
        //- /ws/.venv/lib/python3.11/site-packages/requests/api.py",
    )
    .check(
        "/app/pkg/load.py | load@3:4
        app.pyz/pkg/load.py
        load.py | load@3:4
        /usr/lib/python3.11/json/decoder.py
        /usr/lib/python3/dist-packages/requests/api.py
        /app/.venv/lib/python3.11/site-packages/requests/api.py
        /opt/py/lib/python3.11/site-packages/six.py
        C:/Users/x/AppData/Local/Programs/Python/Python311/Lib/json/decoder.py
        /srv/eggs/site-packages/foo-1.2-py3.11.egg/foo/load.py
        /tmp/ipykernel_4711/1234.py
        <frozen importlib._bootstrap>
        <string>",
        expect![[r#"
            /app/pkg/load.py → pkg/load.py (by suffix pkg/load.py, 0.75)
            app.pyz/pkg/load.py → pkg/load.py (by suffix pkg/load.py, 0.70)
            load.py → pkg/load.py (only file of that name, functions agree, 0.75)
            /usr/lib/python3.11/json/decoder.py → outside: toolchain python 3.11
            /usr/lib/python3/dist-packages/requests/api.py → outside: dependency requests
            /app/.venv/lib/python3.11/site-packages/requests/api.py → outside: dependency requests at $T/ws/.venv/lib/python3.11/site-packages/requests/api.py
            /opt/py/lib/python3.11/site-packages/six.py → outside: dependency six
            C:/Users/x/AppData/Local/Programs/Python/Python311/Lib/json/decoder.py → outside: toolchain python 3.11
            /srv/eggs/site-packages/foo-1.2-py3.11.egg/foo/load.py → outside: dependency foo 1.2
            /tmp/ipykernel_4711/1234.py → no match: not a file
            <frozen importlib._bootstrap> → no match: not a file
            <string> → no match: not a file
        "#]],
    );
}

#[test]
fn javascript_files() {
    files(
        r#"//- /ws/packages/ui/package.json
        {"name": "@org/ui"}
        //- /ws/packages/ui/src/x.ts
        //- /ws/src/x.ts
        //- /ws/src/only.ts"#,
    )
    .check(
        "webpack://shop/./src/only.ts?1a2b
        http://localhost:5173/src/only.ts?t=17
        webpack://shop/./packages/ui/src/x.ts
        /usr/src/app/node_modules/@org/ui/src/x.ts
        /usr/src/app/node_modules/.pnpm/@babel+core@7.1.0/node_modules/@babel/core/src/x.ts
        internal/modules/cjs/loader.js
        node:internal/fs
        wasm://wasm/0a1b2c",
        expect![[r#"
            webpack://shop/./src/only.ts?1a2b → src/only.ts (relative to ., 0.90)
            http://localhost:5173/src/only.ts?t=17 → src/only.ts (relative to ., 0.90)
            webpack://shop/./packages/ui/src/x.ts → packages/ui/src/x.ts (relative to ., 0.90)
            /usr/src/app/node_modules/@org/ui/src/x.ts → packages/ui/src/x.ts (package @org/ui, 0.95)
            /usr/src/app/node_modules/.pnpm/@babel+core@7.1.0/node_modules/@babel/core/src/x.ts → outside: dependency @babel/core 7.1.0
            internal/modules/cjs/loader.js → outside: toolchain node
            node:internal/fs → no match: not a file
            wasm://wasm/0a1b2c → no match: not a file
        "#]],
    );
}

#[test]
fn jvm_classes_find_their_files_by_package() {
    files(
        "//- /ws/src/main/java/com/example/Utils.java
        package com.example;
        //- /ws/src/main/java/com/example/io/Utils.java
        package com.example.io;
        //- /ws/src/main/kotlin/net/Server.kt
        package com.example.net
        //- /ws/src/main/java/com/example/HashMap.java
        package com.example;",
    )
    .check(
        "Utils.java | com.example.Utils$Inner.parse@0:7
        Utils.java | void com.example.io.Utils.parse(java.lang.String)@0:7
        Utils.java | org.lib.Utils.parse@0:7
        Server.kt | com/example/net/ServerKt.lambda$main$0@0:3
        HashMap.java | java.util.HashMap.put@0:600
        java/util/HashMap.java
        com/example/Utils.java
        Gone.java | com.example.Gone.run@0:1",
        expect![[r#"
            Utils.java → src/main/java/com/example/Utils.java (package com.example, 0.75)
            Utils.java → src/main/java/com/example/io/Utils.java (package com.example.io, 0.75)
            Utils.java → no match: files of that name belong to other packages
            Server.kt → src/main/kotlin/net/Server.kt (package com.example.net, 0.75)
            HashMap.java → outside: toolchain jdk
            java/util/HashMap.java → outside: toolchain jdk
            com/example/Utils.java → src/main/java/com/example/Utils.java (package com.example, 0.95)
            Gone.java → no match: no file of that name in the workspace
        "#]],
    );
}

#[test]
fn ruby_and_php_packages() {
    files("//- /ws/lib/rack/request.rb\n//- /ws/src/Request.php\n//- /ws/vendor/acme/http/src/Request.php").check(
        "/usr/local/bundle/gems/rack-2.2.3/lib/rack/request.rb
        /usr/local/bundle/ruby/3.2.0/bundler/gems/rails-0a1b2c3d/lib/rack/request.rb
        /usr/local/lib/ruby/3.2.0/set.rb
        /app/lib/rack/request.rb
        /var/www/vendor/acme/http/src/Request.php
        /var/www/src/Request.php",
        expect![[r#"
            /usr/local/bundle/gems/rack-2.2.3/lib/rack/request.rb → outside: dependency rack 2.2.3
            /usr/local/bundle/ruby/3.2.0/bundler/gems/rails-0a1b2c3d/lib/rack/request.rb → outside: dependency rails 0a1b2c3d
            /usr/local/lib/ruby/3.2.0/set.rb → outside: toolchain ruby 3.2.0
            /app/lib/rack/request.rb → lib/rack/request.rb (by suffix lib/rack/request.rb, 0.80)
            /var/www/vendor/acme/http/src/Request.php → outside: dependency acme/http at $T/ws/vendor/acme/http/src/Request.php
            /var/www/src/Request.php → src/Request.php (by suffix src/Request.php, 0.70)
        "#]],
    );
}

// Evidence.

#[test]
fn a_profile_teaches_where_it_was_built() {
    files(
        "//- /ws/main.c
        //- /ws/tools/main.c
        //- /ws/src/store.c
        //- /ws/src/net/tcp.c",
    )
    .check(
        "/build/src/store.c\n/build/src/net/tcp.c\n/build/main.c\n/elsewhere/main.c",
        expect![[r#"
        /build/src/store.c → src/store.c (prefix /build/ → ., 0.90)
        /build/src/net/tcp.c → src/net/tcp.c (prefix /build/ → ., 0.90)
        /build/main.c → main.c (prefix /build/ → ., 0.90)
        /elsewhere/main.c → no match: only the file name agrees; possible: main.c, tools/main.c
    "#]],
    );
}

#[test]
fn one_guess_teaches_nothing() {
    files("//- /ws/main.c\n//- /ws/tools/main.c\n//- /ws/src/store.c").check(
        "/build/src/store.c\n/build/main.c",
        expect![[r#"
            /build/src/store.c → src/store.c (by suffix src/store.c, 0.70)
            /build/main.c → no match: only the file name agrees; possible: main.c, tools/main.c
        "#]],
    );
}

#[test]
fn prefixes_of_several_roots() {
    files(
        "//- /repos/api/src/db.ts
        //- /repos/api/src/http.ts
        //- /repos/api/index.ts
        //- /repos/web/src/view.ts
        //- /repos/web/src/http.ts
        //- /repos/web/index.ts",
    )
    .roots(&["/repos/api", "/repos/web"])
    .check(
        "/srv/api/src/db.ts
        /srv/api/src/http.ts
        /srv/web/src/view.ts
        /srv/web/src/http.ts
        /srv/web/index.ts
        /app/src/http.ts",
        expect![[r#"
            /srv/api/src/db.ts → 0:src/db.ts (prefix /srv/api/ → ., 0.90)
            /srv/api/src/http.ts → 0:src/http.ts (prefix /srv/api/ → ., 0.90)
            /srv/web/src/view.ts → 1:src/view.ts (prefix /srv/web/ → ., 0.90)
            /srv/web/src/http.ts → 1:src/http.ts (prefix /srv/web/ → ., 0.90)
            /srv/web/index.ts → 1:index.ts (prefix /srv/web/ → ., 0.90)
            /app/src/http.ts → ambiguous: 0:src/http.ts, 1:src/http.ts
        "#]],
    );
}

#[test]
fn nested_roots_name_a_file_once() {
    files("//- /ws/a.c\n//- /ws/sub/src/b.c").roots(&["/ws", "/ws/sub"]).check(
        "$T/ws/sub/src/b.c
        /build/sub/src/b.c
        $T/ws/a.c",
        expect![[r#"
            $T/ws/sub/src/b.c → 1:src/b.c (exact path, 1.00)
            /build/sub/src/b.c → no match: another path of the profile is a better match for the file that fits; possible: 1:src/b.c
            $T/ws/a.c → 0:a.c (exact path, 1.00)
        "#]],
    );
}

#[test]
fn functions_tell_equal_candidates_apart_or_refuse_them() {
    let fixture = files(
        "//- /ws/a/src/lib.py
        def one():
            pass
        //- /ws/b/src/lib.py
        def two():
            pass",
    );
    fixture.check(
        "/x/src/lib.py | two@1:2",
        expect![[r#"
        /x/src/lib.py → b/src/lib.py (by suffix src/lib.py, 0.75)
    "#]],
    );
    fixture.check("/x/src/lib.py | three@1:2", expect![[r#"
        /x/src/lib.py → no match: the functions are not there in the file that fits; possible: a/src/lib.py, b/src/lib.py
    "#]]);
    fixture.check(
        "/x/src/lib.py",
        expect![[r#"
        /x/src/lib.py → ambiguous: a/src/lib.py, b/src/lib.py
    "#]],
    );
}

#[test]
fn a_file_that_does_not_fit_the_lines_is_refused() {
    let fixture = files(
        "//- /ws/src/log.py
        import os

        def log():
            pass",
    );
    fixture.check(
        "/x/src/log.py | log@3:4 | max 4",
        expect![[r#"
        /x/src/log.py → src/log.py (by suffix src/log.py, 0.75)
    "#]],
    );
    fixture.check(
        "/x/src/log.py | log@3:4 | max 400",
        expect![[r#"
        /x/src/log.py → no match: the file that fits is shorter than the profile's lines; possible: src/log.py
    "#]],
    );
    fixture.check(
        "/x/src/log.py | log@90:91 | max 4",
        expect![[r#"
        /x/src/log.py → no match: the functions are not there in the file that fits; possible: src/log.py
    "#]],
    );
    fixture.check(
        "/x/src/log.py | unlog@3:4 | max 4",
        expect![[r#"
        /x/src/log.py → no match: the functions are not there in the file that fits; possible: src/log.py
    "#]],
    );
    fixture.check(
        "$T/ws/src/log.py | unlog@3:4 | max 400",
        expect![[r#"
        $T/ws/src/log.py → src/log.py (exact path, 1.00)
    "#]],
    );
}

#[test]
fn a_neighbour_with_the_same_layout_is_not_the_workspace() {
    let text = "//- /ws/src/lib.rs\n//- /ws/src/util.rs\n//- /dep/src/lib.rs\n//- /dep/src/util.rs";
    files(text).check(
        "$T/ws/src/util.rs\n$T/dep/src/lib.rs\n$T/dep/src/util.rs",
        expect![[r#"
        $T/ws/src/util.rs → src/util.rs (exact path, 1.00)
        $T/dep/src/lib.rs → no match: the file itself is on this machine, outside the workspace; possible: src/lib.rs
        $T/dep/src/util.rs → no match: the file itself is on this machine, outside the workspace; possible: src/util.rs
    "#]],
    );
    files("//- /ws/src/lib.rs\n//- /ws/src/util.rs\n//- /ws/src/more.rs").check(
        "/build/app/src/lib.rs
        /build/app/src/util.rs
        /build/app/src/more.rs
        /build/dep/src/lib.rs
        /build/dep/src/util.rs",
        expect![[r#"
            /build/app/src/lib.rs → src/lib.rs (prefix /build/app/ → ., 0.90)
            /build/app/src/util.rs → src/util.rs (prefix /build/app/ → ., 0.90)
            /build/app/src/more.rs → src/more.rs (prefix /build/app/ → ., 0.90)
            /build/dep/src/lib.rs → no match: another path of the profile is a better match for the file that fits; possible: src/lib.rs
            /build/dep/src/util.rs → no match: another path of the profile is a better match for the file that fits; possible: src/util.rs
        "#]],
    );
}

#[test]
fn two_spellings_of_one_file_are_equal() {
    files("//- /ws/src/a.rs\n//- /ws/src/b.rs")
        .check("./src/a.rs\nsrc/b.rs\n/build/src/a.rs\n/build/src/b.rs\n$T/ws/src/a.rs", expect![[r#"
            ./src/a.rs → src/a.rs (relative to ., 0.90)
            src/b.rs → src/b.rs (relative to ., 0.90)
            /build/src/a.rs → no match: another path of the profile is a better match for the file that fits; possible: src/a.rs
            /build/src/b.rs → src/b.rs (prefix /build/ → ., 0.90)
            $T/ws/src/a.rs → src/a.rs (exact path, 1.00)
        "#]]);
}

#[test]
fn ignored_files_are_found_by_their_place_only() {
    files(
        "//- /ws/.gitignore
        dist/
        //- /ws/dist/app/main.js
        //- /ws/src/app.js",
    )
    .check(
        "/srv/dist/app/main.js\n/srv/app/main.js\n/srv/main.js",
        expect![[r#"
        /srv/dist/app/main.js → dist/app/main.js (by suffix dist/app/main.js, 0.80)
        /srv/app/main.js → no match: no file of that name in the workspace
        /srv/main.js → no match: no file of that name in the workspace
    "#]],
    );
}

#[cfg(unix)]
#[test]
fn links_lead_to_one_file_and_never_out_of_sight() {
    files(
        "//- /ws/real/src/a.c
        //- /ws/alias -> /ws/real
        //- /shared/lib/b.c
        int b(void);
        //- /ws/lib -> /shared/lib",
    )
    .check(
        "/x/alias/src/a.c\n$T/ws/alias/src/a.c\n$T/ws/lib/b.c\n/x/lib/b.c | b@1:1\n$T/shared/lib/b.c",
        expect![[r#"
            /x/alias/src/a.c → no match: another path of the profile is a better match for the file that fits; possible: real/src/a.c
            $T/ws/alias/src/a.c → real/src/a.c (exact path, 1.00)
            $T/ws/lib/b.c → lib/b.c (exact path, 1.00)
            /x/lib/b.c → no match: another path of the profile is a better match for the file that fits; possible: lib/b.c
            $T/shared/lib/b.c → lib/b.c (exact path, 1.00)
        "#]],
    );
}
