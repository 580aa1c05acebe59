//! What other paths, the text of files and the state of the disk say about a path.

use expect_test::{Expect, expect};
use profiler_core::cancel::CancelFlag;
use profiler_core::paths::{Case, Note, PathQuery, Resolution, Workspace, WorkspaceOptions};

use crate::files;

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
        &expect![[r#"
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
        &expect![[r#"
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
        &expect![[r#"
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
        &expect![[r#"
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
        &expect![[r#"
        /x/src/lib.py → b/src/lib.py (by suffix src/lib.py, 0.75)
    "#]],
    );
    fixture.check("/x/src/lib.py | three@1:2", &expect![[r#"
        /x/src/lib.py → no match: the functions are not there in the file that fits; possible: a/src/lib.py, b/src/lib.py
    "#]]);
    fixture.check(
        "/x/src/lib.py",
        &expect![[r#"
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
        &expect![[r#"
        /x/src/log.py → src/log.py (by suffix src/log.py, 0.75)
    "#]],
    );
    fixture.check(
        "/x/src/log.py | log@3:4 | max 400",
        &expect![[r#"
        /x/src/log.py → no match: the file that fits is shorter than the profile's lines; possible: src/log.py
    "#]],
    );
    fixture.check(
        "/x/src/log.py | log@90:91 | max 4",
        &expect![[r#"
        /x/src/log.py → no match: the functions are not there in the file that fits; possible: src/log.py
    "#]],
    );
    fixture.check(
        "/x/src/log.py | unlog@3:4 | max 4",
        &expect![[r#"
        /x/src/log.py → no match: the functions are not there in the file that fits; possible: src/log.py
    "#]],
    );
    fixture.check(
        "$T/ws/src/log.py | unlog@3:4 | max 400",
        &expect![[r#"
        $T/ws/src/log.py → src/log.py (exact path, 1.00)
    "#]],
    );
}

#[test]
fn a_neighbour_with_the_same_layout_is_not_the_workspace() {
    let text = "//- /ws/src/lib.rs\n//- /ws/src/util.rs\n//- /dep/src/lib.rs\n//- /dep/src/util.rs";
    files(text).check(
        "$T/ws/src/util.rs\n$T/dep/src/lib.rs\n$T/dep/src/util.rs",
        &expect![[r#"
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
        &expect![[r#"
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
        .check("./src/a.rs\nsrc/b.rs\n/build/src/a.rs\n/build/src/b.rs\n$T/ws/src/a.rs", &expect![[r#"
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
        &expect![[r#"
        /srv/dist/app/main.js → dist/app/main.js (by suffix dist/app/main.js, 0.80)
        /srv/app/main.js → no match: no file of that name in the workspace
        /srv/main.js → no match: no file of that name in the workspace
    "#]],
    );
}

#[cfg(unix)]
#[test]
fn links_lead_to_one_file() {
    let fixture = files(
        "//- /ws/real/src/a.c
        //- /ws/alias -> /ws/real
        //- /shared/lib/b.c
        int b(void);
        //- /ws/lib -> /shared/lib",
    );
    for path in ["/x/alias/src/a.c", "$T/ws/alias/src/a.c", "$T/ws/real/src/a.c"] {
        assert!(fixture.resolve(path).contains("→ real/src/a.c ("), "{path}");
    }
    for path in ["$T/ws/lib/b.c", "$T/shared/lib/b.c", "/x/lib/b.c"] {
        assert!(fixture.resolve(path).contains("→ lib/b.c ("), "{path}");
    }
    // What lies outside of the workspace is never read, so its functions confirm nothing.
    assert!(fixture.resolve("/x/lib/b.c | b@1:1").contains("0.70"));
}

#[test]
fn relative_paths_from_several_folders_teach_nothing() {
    files(
        "//- /ws/a/src/one.c
        //- /ws/a/src/both.c
        //- /ws/b/src/two.c
        //- /ws/b/src/both.c",
    )
    .check(
        "src/one.c\nsrc/two.c\nsrc/both.c",
        &expect![[r#"
        src/one.c → a/src/one.c (by suffix src/one.c, 0.70)
        src/two.c → b/src/two.c (by suffix src/two.c, 0.70)
        src/both.c → ambiguous: a/src/both.c, b/src/both.c
    "#]],
    );
}

#[test]
fn prefixes_that_contradict_each_other_are_not_followed() {
    files(
        "//- /ws/main.c
        //- /ws/s/1.c
        //- /ws/s/2.c
        //- /ws/old/main.c
        //- /ws/old/s/3.c
        //- /ws/old/s/4.c
        //- /ws/old/s/5.c",
    )
    .check(
        "/build/s/1.c\n/build/s/2.c\n/build/s/3.c\n/build/s/4.c\n/build/s/5.c\n/build/main.c",
        &expect![[r#"
        /build/s/1.c → s/1.c (prefix /build/ → ., 0.90)
        /build/s/2.c → s/2.c (prefix /build/ → ., 0.90)
        /build/s/3.c → old/s/3.c (prefix /build/ → old, 0.90)
        /build/s/4.c → old/s/4.c (prefix /build/ → old, 0.90)
        /build/s/5.c → old/s/5.c (prefix /build/ → old, 0.90)
        /build/main.c → ambiguous: main.c, old/main.c
    "#]],
    );
}

#[test]
fn prefixes_of_continuous_integration_are_learned() {
    files("//- /ws/src/lib.rs\n//- /ws/src/net/tcp.rs\n//- /ws/src/main.rs\n//- /ws/tool/src/main.rs")
        .case(Case::Blind)
        .check(
            r"D:\a\repo\repo\Src\Net\tcp.rs
            D:\a\repo\repo\src\lib.rs
            D:\a\repo\repo\src\main.rs",
            &expect![[r#"
                D:\a\repo\repo\Src\Net\tcp.rs → src/net/tcp.rs (prefix D:/a/repo/repo/ → ., 0.90)
                D:\a\repo\repo\src\lib.rs → src/lib.rs (prefix D:/a/repo/repo/ → ., 0.90)
                D:\a\repo\repo\src\main.rs → src/main.rs (prefix D:/a/repo/repo/ → ., 0.90)
            "#]],
        );
}

#[test]
fn a_deleted_file_is_not_looked_for_elsewhere() {
    files("//- /ws/new/src/log.c").check("$T/ws/src/log.c\n$T/ws/old/src/log.c", &expect![[r#"
        $T/ws/src/log.c → no match: the path is in the workspace, but there is no such file any more; possible: new/src/log.c
        $T/ws/old/src/log.c → no match: the path is in the workspace, but there is no such file any more; possible: new/src/log.c
    "#]]);
}

#[test]
fn an_incomplete_list_makes_guesses_weaker() {
    let mut fixture = files(
        "//- /ws/a/src/one.c
        int one(void);
        //- /ws/a/src/two.c
        //- /ws/b/src/three.c",
    );
    fixture.options.max_files = 2;
    let workspace = fixture.open();
    assert!(!workspace.is_complete());
    assert_eq!(workspace.notes(), [Note::TooManyFiles { limit: 2 }]);
    let answers: String = [
        "$T/ws/a/src/one.c",
        "$T/ws/b/src/three.c",
        "/x/a/src/two.c",
        "/x/src/two.c",
        "/y/b/src/three.c",
        "/x/four.c",
        "one.c | one@1:1",
    ]
    .into_iter()
    .map(|path| fixture.resolve(path))
    .collect();
    expect![[r#"
        $T/ws/a/src/one.c → a/src/one.c (exact path, 1.00)
        $T/ws/b/src/three.c → b/src/three.c (exact path, 1.00)
        /x/a/src/two.c → a/src/two.c (by suffix a/src/two.c, 0.70)
        /x/src/two.c → no match: not all files of the workspace are known; possible: a/src/two.c
        /y/b/src/three.c → b/src/three.c (by suffix b/src/three.c, 0.70)
        /x/four.c → no match: not all files of the workspace are known
        one.c → no match: not all files of the workspace are known; possible: a/src/one.c
    "#]]
    .assert_eq(&answers);

    let stop = CancelFlag::new();
    stop.cancel();
    let workspace = Workspace::open(&fixture.roots, &WorkspaceOptions::default(), &stop);
    assert_eq!(workspace.notes(), [Note::Stopped { files: 3 }]);
    assert!(!workspace.is_complete());
}

// The message is the system's.
#[cfg(target_os = "linux")]
#[test]
fn what_can_not_be_read_is_told() {
    let fixture = files(
        "//- /ws/Cargo.toml
        [package
        //- /ws/web/package.json
        {
        //- /ws/src/lib.rs",
    )
    .roots(&["/ws", "/missing"])
    .rule("", "src");
    let workspace = fixture.open();
    let notes: Vec<String> = workspace.notes().iter().map(ToString::to_string).collect();
    let folder = fixture.folder();
    expect![[r#"
        $T/missing: No such file or directory (os error 2)
        Cargo.toml: unclosed table, expected `]`
        web/package.json: EOF while parsing an object at line 2 column 0
        a path rule without a prefix is ignored"#]]
    .assert_eq(&notes.join("\n").replace(folder.to_str().unwrap(), "$T"));
    assert!(fixture.resolve("$T/ws/src/lib.rs").contains("exact path"));
}

#[test]
fn of_very_many_candidates_only_some_are_listed() {
    let text: String = (0..100).fold(String::new(), |text, i| text + &format!("//- /ws/{i:02}/index.ts\n"));
    let workspace = files(&text).open();
    let query = PathQuery { path: "index.ts", ..PathQuery::default() };
    let [Resolution::Ambiguous { candidates }] = &workspace.resolve(&[query])[..] else { panic!("not ambiguous") };
    assert_eq!(candidates.len(), 17);
}

/// Twins of one path: the preferred folder decides between equals, and never against evidence.
#[test]
fn a_preferred_folder_breaks_ties_and_nothing_else() {
    let check = |folder: &str, want: &Expect| {
        let fixture = files(
            "//- /ws/cart/src/main.rs
            fn checkout() {}
            //- /ws/till/src/main.rs
            fn checkout() {}
            //- /ws/other/src/main.rs
            fn other() {}
            //- /ws/lib/src/util.rs
            fn util() {}",
        );
        let fixture = fixture.prefer(folder);
        let paths = ["src/main.rs | checkout@1:1", "src/main.rs | other@1:1", "src/util.rs", "/ci/src/main.rs"];
        want.assert_eq(&paths.map(|path| fixture.resolve(path)).concat());
    };
    check(
        "/ws/none",
        &expect![[r#"
        src/main.rs → ambiguous: cart/src/main.rs, other/src/main.rs, till/src/main.rs
        src/main.rs → other/src/main.rs (by suffix src/main.rs, 0.75)
        src/util.rs → lib/src/util.rs (by suffix src/util.rs, 0.70)
        /ci/src/main.rs → ambiguous: cart/src/main.rs, other/src/main.rs, till/src/main.rs
    "#]],
    );
    check(
        "/ws/till",
        &expect![[r#"
        src/main.rs → till/src/main.rs (by suffix src/main.rs, 0.75)
        src/main.rs → other/src/main.rs (by suffix src/main.rs, 0.75)
        src/util.rs → lib/src/util.rs (by suffix src/util.rs, 0.70)
        /ci/src/main.rs → till/src/main.rs (by suffix src/main.rs, 0.70)
    "#]],
    );
    check(
        "/ws/other",
        &expect![[r#"
        src/main.rs → ambiguous: cart/src/main.rs, other/src/main.rs, till/src/main.rs
        src/main.rs → other/src/main.rs (by suffix src/main.rs, 0.75)
        src/util.rs → lib/src/util.rs (by suffix src/util.rs, 0.70)
        /ci/src/main.rs → other/src/main.rs (by suffix src/main.rs, 0.70)
    "#]],
    );
    check(
        "/ws",
        &expect![[r#"
        src/main.rs → ambiguous: cart/src/main.rs, other/src/main.rs, till/src/main.rs
        src/main.rs → other/src/main.rs (by suffix src/main.rs, 0.75)
        src/util.rs → lib/src/util.rs (by suffix src/util.rs, 0.70)
        /ci/src/main.rs → ambiguous: cart/src/main.rs, other/src/main.rs, till/src/main.rs
    "#]],
    );
}

#[test]
fn a_preferred_folder_is_found_among_very_many() {
    let text: Vec<String> =
        (10..50).map(|service| format!("//- /ws/s{service}/src/main.rs\nfn main() {{}}\n")).collect();
    let text = text.concat();
    files(&text).prefer("/ws/s31").check(
        "src/main.rs",
        &expect![[r#"
        src/main.rs → s31/src/main.rs (by suffix src/main.rs, 0.70)
    "#]],
    );
}

/// Copies of one version are one file; without a version nobody knows.
#[test]
fn code_of_others_is_known_by_its_version() {
    let workspace = files("//- /ws/src/main.rs").open();
    let same = |a: &str, b: &str| {
        let (a, b) = (workspace.versioned(a), workspace.versioned(b));
        a.is_some() && a == b
    };
    let crates = "/registry/src/index.crates.io-6f17d22bba15001f";
    for (a, b, want) in [
        (
            format!("/ci/.cargo{crates}/serde-1.0.2/src/de.rs"),
            format!("/home/me/.cargo{crates}x/serde-1.0.2/src/de.rs"),
            true,
        ),
        (
            format!("/ci/.cargo{crates}/serde-1.0.2/src/de.rs"),
            format!("/ci/.cargo{crates}/serde-1.0.3/src/de.rs"),
            false,
        ),
        (
            format!("/ci/.cargo{crates}/serde-1.0.2/src/de.rs"),
            format!("/ci/.cargo{crates}/serde-1.0.2/src/ser.rs"),
            false,
        ),
        (
            "/go/pkg/mod/golang.org/x/net@v0.17.0/http2/frame.go".to_owned(),
            "/root/go/pkg/mod/golang.org/x/net@v0.17.0/http2/frame.go".to_owned(),
            true,
        ),
        (
            "/rustc/abc/library/core/src/fmt/mod.rs".to_owned(),
            "/rustc/abc/library/core/src/fmt/mod.rs".to_owned(),
            true,
        ),
        (
            "/rustc/abc/library/core/src/fmt/mod.rs".to_owned(),
            "/rustc/def/library/core/src/fmt/mod.rs".to_owned(),
            false,
        ),
        ("/usr/local/go/src/fmt/print.go".to_owned(), "/usr/local/go/src/fmt/print.go".to_owned(), false),
        ("src/main.rs".to_owned(), "src/main.rs".to_owned(), false),
    ] {
        assert_eq!(same(&a, &b), want, "{a} {b}");
    }
}
