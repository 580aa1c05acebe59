//! Cases that went wrong in other tools, one test each.

use expect_test::expect;
use profiler_core::paths::Case;

use crate::{below, files};

#[test]
fn a_gopath_in_a_container_matches_by_its_end() {
    files("//- /ws/postgres/init.go\n//- /ws/redis/init.go").check(
        "/go/src/github.com/o/repo/postgres/init.go",
        &expect![[r#"
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
        &expect![[r#"
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
        &expect![[r#"
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
        &expect![[r#"
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
        &expect![[r#"
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
        &expect![[r#"
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
        &expect![[r#"
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
        &expect![[r#"
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
        &expect![[r#"
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
            &expect![[r#"
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
        &expect![[r#"
            cupperscan.cpp → src/cupperscan.cpp (only file of that name, functions agree, 0.75)
            CUPPERSCAN.cpp → no match: no file of that name in the workspace
        "#]],
    );
    files("//- /ws/src/cupperscan.cpp").check(
        "cupperscan.cpp",
        &expect![[r#"
        cupperscan.cpp → no match: only the file name agrees; possible: src/cupperscan.cpp
    "#]],
    );
}

#[test]
fn an_absolute_name_behind_the_folder_of_compilation_wins() {
    files("//- /C:/git/src/main.cpp").roots(&["/C:/git"]).check(
        "/c/git/build/C:/git/src/main.cpp\n/c/git/src/main.cpp\n/mnt/c/git/src/main.cpp",
        &expect![[r#"
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
        &expect![[r#"
        /C:\ws\a.cpp → a.cpp (exact path, 1.00)
    "#]],
    );
}

#[test]
fn two_files_of_one_name_are_ambiguous() {
    files("//- /ws/a/mod.rs\n//- /ws/b/mod.rs").check(
        "mod.rs\n/build/c/mod.rs\n/build/b/mod.rs",
        &expect![[r#"
        mod.rs → ambiguous: a/mod.rs, b/mod.rs
        /build/c/mod.rs → no match: only the file name agrees; possible: a/mod.rs, b/mod.rs
        /build/b/mod.rs → b/mod.rs (by suffix b/mod.rs, 0.70)
    "#]],
    );
}

#[test]
fn a_volume_may_be_blind_to_case() {
    let profile = "C:/proj/Go/a.go\nfile:///c%3A/proj/go/a.go";
    files("//- /C:/proj/go/a.go").roots(&["/C:/proj/go"]).case(Case::Blind).check(
        profile,
        &expect![[r#"
        C:/proj/Go/a.go → a.go (exact path, 1.00)
        file:///c%3A/proj/go/a.go → a.go (exact path, 1.00)
    "#]],
    );
    files("//- /C:/proj/go/a.go").roots(&["/C:/proj/go"]).check(
        profile,
        &expect![[r#"
        C:/proj/Go/a.go → no match: only the file name agrees; possible: a.go
        file:///c%3A/proj/go/a.go → a.go (exact path, 1.00)
    "#]],
    );
}

#[test]
fn case_merges_two_spellings_only_on_a_blind_volume() {
    let profile = "/app/Utils/helpers.py\n/app/utils/helpers.py";
    files("//- /ws/utils/helpers.py").case(Case::Blind).check(
        profile,
        &expect![[r#"
        /app/Utils/helpers.py → utils/helpers.py (prefix /app/ → ., 0.90)
        /app/utils/helpers.py → utils/helpers.py (prefix /app/ → ., 0.90)
    "#]],
    );
    files("//- /ws/utils/helpers.py").check(
        profile,
        &expect![[r#"
        /app/Utils/helpers.py → no match: only the file name agrees; possible: utils/helpers.py
        /app/utils/helpers.py → utils/helpers.py (by suffix utils/helpers.py, 0.70)
    "#]],
    );
    files("//- /ws/utils/helpers.py\n//- /ws/Utils/helpers.py").check(
        profile,
        &expect![[r#"
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
        &expect![[r#"
        $T/private/var/ws/src/a.c → src/a.c (exact path, 1.00)
        $T/var/ws/src/a.c → src/a.c (exact path, 1.00)
    "#]],
    );
    files(text).roots(&["/private/var/ws"]).check(
        profile,
        &expect![[r#"
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
        &expect![[r#"
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

/// As `python -m cProfile app.py` and `perf script -F +srcline` write them, from the folder of the file.
#[test]
fn a_bare_name_is_the_only_file_of_that_name_if_its_functions_are_there() {
    let own = "//- /ws/app.c
        int work(int n) {
          return n * 3;
        }
        //- /ws/app.py
        def work(n):
            return n * 3
        ";
    files(own).check(
        "app.c | work@0:2
        app.py | work@1:0 | <module>@1:0
        app.c | other@0:2
        app.py",
        &expect![[r#"
            app.c → app.c (only file of that name, functions agree, 0.75)
            app.py → app.py (only file of that name, functions agree, 0.75)
            app.c → no match: the functions are not there in the file that fits
            app.py → no match: only the file name agrees; possible: app.py
        "#]],
    );
    // Another of the name: the functions tell, or nobody.
    files(&format!("{own}\n//- /ws/vendored/app.c\nint other(void) {{\n  return 1;\n}}\n//- /ws/old/app.py\ndef work(n):\n    return n\n")).check(
        "app.c | work@0:2
        app.py | work@1:0",
        &expect![[r#"
            app.c → app.c (only file of that name, functions agree, 0.75)
            app.py → ambiguous: app.py, old/app.py
        "#]],
    );
}
