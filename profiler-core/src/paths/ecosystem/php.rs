//! PHP: packages that Composer installs below `vendor`.

use super::{Claim, Ecosystem, Entry, Index, Query, dependency};
use crate::paths::resolution::OutsideKind;
use crate::paths::source_path::extension;

pub(super) const ENTRY: Entry = Entry { foreign, read: |_, _| Box::new(Php) };

struct Php;

impl Ecosystem for Php {
    fn claim(&self, _: &Query<'_>, _: &Index) -> Option<Claim> {
        None
    }
}

fn foreign(parts: &[&str]) -> Option<OutsideKind> {
    if extension(parts.last()?) != "php" {
        return None;
    }
    match super::after(parts, &["vendor"])? {
        [owner, package, _, ..] => Some(dependency(format!("{owner}/{package}"), None)),
        ["composer", _] | ["autoload.php"] => Some(dependency("composer", None)),
        _ => None,
    }
}
