//! Symbol names for people: what Rust and C++ compilers encode, decoded.
//!
//! Only names that carry a scheme's prefix are touched. Overloads stay apart: argument
//! types are kept, Rust's hashes are not.

use std::borrow::Cow;

/// Longer names are left alone: demangling may expand exponentially.
const MAX_LENGTH: usize = 64 << 10;
/// What asynchronous code is in, is not looked into when it is longer.
const MAX_AROUND: usize = 4 << 10;

/// The readable form of a symbol; the symbol itself where there is none.
///
/// ```
/// use profiler_core::demangle::demangle;
/// assert_eq!(demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
/// assert_eq!(demangle("_Z3addii"), "add(int, int)");
/// assert_eq!(demangle("main.(*Server).Serve"), "main.(*Server).Serve");
/// assert_eq!(demangle("shop::checkout::{async_fn#0}"), "async fn shop::checkout");
/// ```
pub fn demangle(symbol: &str) -> Cow<'_, str> {
    // Mach-O puts one more underscore in front.
    let plain = symbol.strip_prefix('_').filter(|rest| rest.starts_with("_Z") || rest.starts_with("_R"));
    let plain = plain.unwrap_or(symbol);
    if symbol.len() > MAX_LENGTH {
        return Cow::Borrowed(symbol);
    }
    if !(plain.starts_with("_Z") || plain.starts_with("_R")) {
        return coroutine(symbol).map_or(Cow::Borrowed(symbol), Cow::Owned);
    }
    if let Ok(name) = rustc_demangle::try_demangle(plain) {
        return Cow::Owned(format!("{name:#}"));
    }
    cpp_demangle::Symbol::new(plain)
        .ok()
        .and_then(|name| name.demangle().ok())
        .map_or(Cow::Borrowed(symbol), Cow::Owned)
}

/// What Rust's debug info calls `{async_fn#0}`, as its author would. With line tables alone it does not say which.
fn coroutine(name: &str) -> Option<String> {
    let (around, inner) = name.rsplit_once("::").unwrap_or(("", name));
    let kind = inner.strip_prefix("{async_")?.strip_suffix('}')?.split('#').next()?;
    // It may be in another one; nobody writes so many of them.
    let around = if around.len() > MAX_AROUND { Cow::Borrowed(around) } else { demangle(around) };
    Some(match (kind, around.is_empty()) {
        ("fn", true) => "async fn".to_owned(),
        ("fn", false) => format!("async fn {around}"),
        (kind, true) => format!("async {kind}"),
        (kind, false) => format!("async {kind} in {around}"),
    })
}
