//! Lines that a server has looked up and that are not those that ran, but those that functions
//! start on: how much of a profile they are of, after what this machine knows better was put in.
//!
//! A location with an address is one that the server looked up; what came to it with names has
//! none. Only where a stack ends is counted, which is what lines cost themselves.

use crate::measure::Share;
use crate::profile::{LocId, Profile};

/// What is to be said, as sentences. `is_ours` is whether a location has its lines from here.
pub(super) fn in_words(profile: &Profile, is_ours: impl Fn(LocId) -> bool) -> Vec<String> {
    let (samples, locations) = (profile.samples(), profile.locations());
    let values = samples.values(profile.meta().default_value_type);
    let (mut total, mut theirs, mut ours) = (0i128, 0i128, 0i128);
    for (row, value) in values.iter().enumerate() {
        let value = i128::from(value.unsigned_abs());
        total += value;
        let Some(&leaf) = samples.stack(row).first() else { continue };
        if is_ours(leaf) {
            ours += value;
        } else if locations.address(leaf) != 0 && locations.lines(leaf).iter().any(|line| line.line.is_known()) {
            theirs += value;
        }
    }
    let share = |part: i128| {
        let share = Share::of(i64::try_from(part).ok()?, i64::try_from(total).ok()?)?;
        (part > 0).then(|| share.whole_percent())
    };
    let ours = share(ours).map(|share| {
        format!(
            "the lines of {share} of the value were looked up here, in binaries of the same build, not by the server"
        )
    });
    let theirs = share(theirs).map(|share| {
        format!(
            "the lines of {share} of the value were looked up by the server, which mostly gives the line that a function starts \
             on; with the binary of the same build in a folder of symbols.debugDirs (--debug-dir), or in the workspace, \
             they are looked up here"
        )
    });
    ours.into_iter().chain(theirs).collect()
}
