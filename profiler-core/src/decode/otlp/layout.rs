//! Which version of the protocol wrote a request. The field numbers of samples and profiles
//! changed three times, and a reader of one version takes values of another for something
//! else without noticing. So the wire types of all fields are looked at before anything is
//! decoded.

use super::wire::{Value, checked};

/// Versions that differ on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layout {
    /// Up to 1.7: stacks are ranges of one list in the profile.
    V1_7,
    /// 1.8: stacks have a table.
    V1_8,
    /// 1.9: the comments of profiles are gone.
    V1_9,
    /// 1.10 and later: fields of samples in another order.
    V1_10,
}

/// Finds the version by the profiles of a request and the size of its attribute table.
pub(super) fn layout(profiles: &[&[u8]], attribute_count: usize) -> Layout {
    let (mut old, mut new, mut undecided) = (0u64, 0u64, 0u64);
    let mut is_1_8 = false;
    for profile in profiles {
        for (number, value) in checked(profile) {
            match (number, value) {
                // The list of locations; later the time, which is fixed.
                (3, Value::Varint(_) | Value::Bytes(_)) => return Layout::V1_7,
                // The profile's id; later a counter.
                (8, Value::Bytes(_)) => is_1_8 = true,
                (2, Value::Bytes(sample)) => match vote(sample, attribute_count) {
                    Vote::Old => old += 1,
                    Vote::New => new += 1,
                    Vote::RatherNew => undecided += 1,
                    Vote::None => {}
                },
                _ => {}
            }
        }
    }
    if is_1_8 {
        Layout::V1_8
    } else if old > new || (old > 0 && old + undecided > new && new == 0) {
        Layout::V1_9
    } else {
        Layout::V1_10
    }
}

enum Vote {
    Old,
    New,
    RatherNew,
    None,
}

/// What a sample tells: before 1.10 its fields are stack, values, attributes, link, times;
/// since then stack, attributes, link, values, times.
fn vote(sample: &[u8], attribute_count: usize) -> Vote {
    let (mut has_second, mut has_times, mut fits) = (false, false, true);
    for (number, value) in checked(sample) {
        match (number, value) {
            (3, value) if value.is_bytes() => return Vote::Old,
            (4, value) if value.is_varint() => return Vote::Old,
            (3, value) if value.is_varint() => return Vote::New,
            (4, value) if value.is_bytes() => return Vote::New,
            (2, value) => {
                has_second = true;
                fits &= each_varint(value).all(|index| usize::try_from(index).is_ok_and(|i| i < attribute_count));
            }
            (5, _) => has_times = true,
            _ => {}
        }
    }
    match (has_second, has_times && fits) {
        (false, _) => Vote::None,
        // Attributes alone would make a sample without any value.
        (true, false) => Vote::Old,
        (true, true) => Vote::RatherNew,
    }
}

fn each_varint(value: Value<'_>) -> impl Iterator<Item = u64> {
    let (mut packed, mut single) = match value {
        Value::Bytes(bytes) => (bytes, None),
        Value::Varint(number) => (&[][..], Some(number)),
        _ => (&[][..], None),
    };
    std::iter::from_fn(move || single.take().or_else(|| prost::encoding::decode_varint(&mut packed).ok()))
}
