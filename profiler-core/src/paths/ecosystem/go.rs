//! Go: modules, the module cache, trimmed paths, GOPATH, vendored packages, the standard
//! library.
//!
//! The names of functions carry the import path of their package, which says more than any
//! path: it tells same-named files apart and unmasks the standard library where `-trimpath`
//! left only `runtime/proc.go`.

use super::{Claim, Entry, Index, Query, dependency};
use crate::paths::resolution::{OutsideKind, WorkspaceFile};
use crate::paths::source_path::{SourcePath, extension};

pub(super) const ENTRY: Entry = Entry { foreign, read: |index, _| Box::new(Go::read(index)) };

struct Go {
    /// The longest path first, as modules nest.
    modules: Vec<Module>,
}

struct Module {
    path: String,
    /// Components of its folder on this machine.
    folder: Vec<String>,
}

/// First elements of the import paths of the standard library.
const STANDARD: [&str; 53] = [
    "archive",
    "arena",
    "bufio",
    "bytes",
    "cmd",
    "cmp",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "go",
    "hash",
    "html",
    "image",
    "index",
    "internal",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "plugin",
    "reflect",
    "regexp",
    "runtime",
    "slices",
    "sort",
    "strconv",
    "strings",
    "structs",
    "sync",
    "syscall",
    "testing",
    "text",
    "time",
    "unicode",
    "unique",
    "unsafe",
    "vendor",
    "weak",
    "simd",
];

impl super::Ecosystem for Go {
    fn claim(&self, query: &Query<'_>, index: &Index) -> Option<Claim> {
        let parts = query.path.strs();
        if let Some(claim) = toolchain_module(&parts) {
            return Some(claim);
        }
        if let Some((module, version, rest)) = versioned(&parts, query.path.is_absolute()) {
            return Some(self.of_version(&module, version, rest, index));
        }
        match extension(query.path.name()) {
            "go" | "s" => {}
            "c" | "h" | "S" => return standard_library(query, index),
            _ => return None,
        }
        match query.path.name() {
            "_cgo_gotypes.go" => return Some(generated("cgo")),
            "_testmain.go" => return Some(generated("go test")),
            _ => {}
        }
        if !query.path.is_absolute()
            && let Some(claim) = self.inside(&parts, index)
        {
            return Some(claim);
        }
        if let Some(claim) = standard_library(query, index) {
            return Some(claim);
        }
        if foreign(&parts).is_some() {
            return None;
        }
        // Trimmed, these name a module, and not one of the workspace.
        if !query.path.is_absolute() && !self.modules.is_empty() && is_host(parts[0]) && parts.len() > 1 {
            return Some(Claim::dependency(module_guess(&parts[..parts.len() - 1]), None));
        }
        let below_gopath = parts.iter().rposition(|part| *part == "src").map(|at| &parts[at + 1..]);
        below_gopath.and_then(|rest| self.inside(rest, index)).or_else(|| self.of_package(query, index))
    }
}

impl Go {
    fn read(index: &Index) -> Self {
        let mut modules = Vec::new();
        for name in ["go.mod", "go.work"] {
            for &row in index.named(name) {
                let file = index.file(row);
                let Some((text, true)) = index.read(&file, super::MAX_MANIFEST) else { continue };
                read_manifest(&text, &index.folder_parts(&file), &mut modules);
            }
        }
        modules.sort_by(|a, b| (b.path.len(), &a.path, &a.folder).cmp(&(a.path.len(), &b.path, &b.folder)));
        Self { modules }
    }

    /// A path below an import path: `example.com/demo/internal/work/work.go`.
    fn inside(&self, import: &[&str], index: &Index) -> Option<Claim> {
        let mut files: Vec<WorkspaceFile> = Vec::new();
        let mut found: Option<&str> = None;
        for module in &self.modules {
            // A module that holds the file and has a longer path shadows those around it.
            if found.is_some_and(|path| path != module.path) {
                break;
            }
            let Some(rest) = module.tail(import) else { continue };
            if let Some(file) = module.file(rest, index) {
                files.push(file);
                found = Some(&module.path);
            }
        }
        Some(Claim::Inside { files, by: format!("module {}", found?) })
    }

    /// A file of a module at a version: the workspace's own all the same if the module is here.
    fn of_version(&self, module: &str, version: &str, rest: &[&str], index: &Index) -> Claim {
        let import: Vec<&str> = module.split('/').chain(rest.iter().copied()).collect();
        if let Some(claim) =
            self.modules.iter().any(|own| own.path == module).then(|| self.inside(&import, index)).flatten()
        {
            return claim;
        }
        let vendored: Vec<&str> = std::iter::once("vendor").chain(import).collect();
        let file = index.at_any(&vendored).into_iter().next().map(|file| file.path);
        Claim::Outside { kind: dependency(module, Some(version)), file }
    }

    /// The package that functions say they are in, wherever the build took place.
    fn of_package(&self, query: &Query<'_>, index: &Index) -> Option<Claim> {
        let packages: Vec<String> =
            query.asked.functions.iter().filter_map(|function| package_of(function.name)).collect();
        let own = packages.iter().find_map(|package| {
            let import: Vec<&str> = package.split('/').chain([query.path.name()]).collect();
            self.inside(&import, index)
        });
        if own.is_some() {
            return own;
        }
        // Only where there are modules is it known what a package of the workspace is called.
        let foreign = |package: &String| {
            let parts: Vec<&str> = package.split('/').collect();
            is_host(parts[0]) && self.modules.iter().all(|module| module.tail(&parts).is_none())
        };
        let all_foreign = !self.modules.is_empty() && !packages.is_empty() && packages.iter().all(foreign);
        all_foreign.then(|| Claim::dependency(module_guess(&packages[0].split('/').collect::<Vec<_>>()), None))
    }
}

impl Module {
    /// What of an import path is below the module. GOPATH knows no `/v2` at the end of a module.
    fn tail<'i, 's>(&self, import: &'i [&'s str]) -> Option<&'i [&'s str]> {
        let below = |prefix: &str| {
            let length = prefix.split('/').count();
            let matches = import.len() >= length && prefix.split('/').eq(import[..length].iter().copied());
            matches.then(|| &import[length..])
        };
        below(&self.path).or_else(|| below(without_major(&self.path)?))
    }

    fn file(&self, rest: &[&str], index: &Index) -> Option<WorkspaceFile> {
        let target: Vec<&str> = self.folder.iter().map(String::as_str).chain(rest.iter().copied()).collect();
        index.below(&target)
    }
}

fn without_major(module: &str) -> Option<&str> {
    let (path, major) = module.rsplit_once('/')?;
    let digits = major.strip_prefix('v')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(path)
}

/// Takes the module and the replacements by local folders from a `go.mod` or `go.work`.
fn read_manifest(text: &str, folder: &[String], modules: &mut Vec<Module>) {
    let mut block = "";
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let mut words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches(['"', '`'])).collect();
        match words[..] {
            [] => continue,
            [")"] => {
                block = "";
                continue;
            }
            [directive, "("] => {
                block = directive;
                continue;
            }
            _ if block.is_empty() => {}
            _ => words.insert(0, block),
        }
        match words[..] {
            ["module", path] => modules.push(Module { path: path.to_owned(), folder: folder.to_owned() }),
            ["replace", path, "=>", target] | ["replace", path, _, "=>", target] if target.starts_with(['.', '/']) => {
                let absolute =
                    if target.starts_with('/') { target.to_owned() } else { format!("/{}/{target}", folder.join("/")) };
                let folder = SourcePath::of_folder(absolute.as_ref());
                modules.push(Module { path: path.to_owned(), folder });
            }
            _ => {}
        }
    }
}

/// `golang.org/toolchain@v0.0.1-go1.22.1.linux-amd64/src/…`
fn toolchain_module(parts: &[&str]) -> Option<Claim> {
    let version = parts.iter().find_map(|part| part.strip_prefix("toolchain@"))?;
    let version = version.split_once("-go").map_or(version, |(_, version)| version);
    let platform = version.rsplit_once('-').and_then(|(rest, _)| rest.rsplit_once('.'));
    Some(Claim::toolchain("go", Some(platform.map_or(version, |(version, _)| version))))
}

/// `…/pkg/mod/github.com/!burnt!sushi/toml@v1.2.0/decode.go`, or the same trimmed: the module,
/// its version, and the path below it.
fn versioned<'p, 's>(parts: &'p [&'s str], absolute: bool) -> Option<(String, &'s str, &'p [&'s str])> {
    let is_version =
        |version: &str| version.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let at = parts.iter().position(|part| part.split_once('@').is_some_and(|(_, version)| is_version(version)))?;
    let (last, version) = parts[at].split_once('@')?;
    let cache = parts.windows(2).position(|pair| pair == ["pkg", "mod"]);
    let start = match cache {
        Some(cache) if cache + 2 <= at => cache + 2,
        _ if !absolute => 0,
        // A module cache elsewhere: a module begins with the name of a host.
        _ => (0..=at).find(|&i| parts[i].contains('.')).unwrap_or(at),
    };
    let rest = &parts[at + 1..];
    // pnpm keeps packages in folders such as `x@1.2.3`; only Go has the `v`.
    let module: Vec<&str> = parts[start..at].iter().copied().chain([last]).collect();
    (!rest.is_empty()).then(|| (unescape(&module.join("/")), version, rest))
}

/// The module cache writes `!b` for `B`.
fn unescape(module: &str) -> String {
    let mut upper = false;
    module
        .chars()
        .filter_map(|c| {
            let was = std::mem::replace(&mut upper, c == '!');
            (c != '!').then(|| if was { c.to_ascii_uppercase() } else { c })
        })
        .collect()
}

fn standard_library(query: &Query<'_>, index: &Index) -> Option<Claim> {
    let parts = query.path.strs();
    let is_standard = |import: &[&str]| import.len() >= 2 && STANDARD.contains(&import[0]);
    let packages: Vec<String> = query.asked.functions.iter().filter_map(|f| package_of(f.name)).collect();
    // Names may be linked across packages (`sync.runtime_Semacquire` is in `runtime`), so any
    // package of the library confirms another one.
    let confirmed = packages.iter().any(|package| STANDARD.contains(&package.split('/').next().unwrap_or_default()));
    if !query.path.is_absolute() {
        let trimmed = is_standard(&parts)
            && extension(query.path.name()) != "c"
            && if packages.is_empty() { index.at_any(&parts).is_empty() } else { confirmed };
        return trimmed.then(|| Claim::toolchain("go", None));
    }
    let src = (1..parts.len()).find(|&at| parts[at] == "src" && is_standard(&parts[at + 1..]))?;
    let version = root_version(&parts[..src]);
    let known = if packages.is_empty() { version.is_some() } else { confirmed };
    known.then(|| Claim::toolchain("go", version.filter(|version| !version.is_empty())))
}

/// The version of a Go installation, from its folder: `…/go`, `…/go1.22.1`, `…/go-1.21`,
/// `…/go/1.22.1/x64`. Empty when it does not say; `None` when it looks like no installation.
fn root_version<'s>(folder: &[&'s str]) -> Option<&'s str> {
    let is_version = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match folder {
        [.., "go", version, "x64" | "arm64"] => Some(version),
        [.., last] => {
            let rest = last.strip_prefix("go").or_else(|| last.strip_prefix("Go"))?;
            let version = rest.strip_prefix('-').unwrap_or(rest);
            match version {
                "root" | "lang" => Some(""),
                _ => is_version(version).then_some(version),
            }
        }
        [] => None,
    }
}

/// The import path of a function's package; `None` for package main, whose path nobody knows,
/// and for names that are not Go's.
fn package_of(function: &str) -> Option<String> {
    let name = function.split(['(', '[']).next()?;
    if name.contains(':') || name.contains(' ') {
        return None;
    }
    let slash = name.rfind('/').map_or(0, |at| at + 1);
    let dot = slash + name[slash..].find('.')?;
    let package = &name[..dot];
    (package != "main" && !package.is_empty()).then(|| package.replace("%2e", "."))
}

/// Import paths of other people's packages begin with the name of a host.
fn is_host(part: &str) -> bool {
    part.rsplit_once('.').is_some_and(|(name, top)| !name.is_empty() && top.chars().all(char::is_alphabetic))
}

/// The module that a package most likely belongs to.
fn module_guess(package: &[&str]) -> String {
    let length = match package.first() {
        Some(&("github.com" | "gitlab.com" | "bitbucket.org" | "golang.org" | "google.golang.org")) => 3,
        Some(&"gopkg.in") => 2,
        _ => package.len(),
    };
    package[..length.min(package.len())].join("/")
}

fn foreign(parts: &[&str]) -> Option<OutsideKind> {
    let at = parts.iter().rposition(|part| *part == "vendor")?;
    // What is behind the folder; nothing, if the file itself is called so.
    let package = parts.get(at + 1..parts.len() - 1)?;
    // Below a folder of this name, Go looks for nothing but packages of others.
    let is_go = matches!(extension(parts.last()?), "go" | "s");
    (is_go && !package.is_empty()).then(|| dependency(module_guess(package), None))
}

fn generated(by: &str) -> Claim {
    Claim::Outside { kind: OutsideKind::Generated { by: by.to_owned() }, file: None }
}
