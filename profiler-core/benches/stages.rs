//! Speed of the stages between the bytes of a profile and the cost of every line, each on a
//! profile of about 5 MB. `docs/benchmarks.md` says how they relate to the budgets.

use std::io::Write;
use std::sync::LazyLock;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use flate2::Compression;
use flate2::write::GzEncoder;
use perflens_tests::large_profile;
use profiler_core::attribute::{FileGroups, Query, attribute};
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{Limits, decode};
use profiler_core::paths::clean::clean;
use profiler_core::profile::Profile;

const SAMPLES: u32 = 55_000;

static RAW: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = Vec::new();
    large_profile::write(&mut bytes, SAMPLES).expect("a vector takes any bytes");
    bytes
});

static GZIP: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&RAW).and_then(|()| encoder.finish()).expect("a vector takes any bytes")
});

static PROFILE: LazyLock<Profile> = LazyLock::new(|| decoded(&RAW));

fn main() {
    divan::main();
}

fn decoded(bytes: &[u8]) -> Profile {
    decode(bytes, &Limits::default(), &CancelFlag::new()).expect("the generator writes valid profiles")
}

/// Throughput is per uncompressed byte, as in `decode_gzip`.
#[divan::bench]
fn decode_raw(bencher: Bencher<'_, '_>) {
    let bytes = &*RAW;
    bencher.counter(BytesCount::new(bytes.len())).bench(|| decoded(bytes));
}

#[divan::bench]
fn decode_gzip(bencher: Bencher<'_, '_>) {
    let bytes = &*GZIP;
    bencher.counter(BytesCount::new(RAW.len())).bench(|| decoded(bytes));
}

/// One item is one sample.
#[divan::bench]
fn attribute_by_path(bencher: Bencher<'_, '_>) {
    let profile = &*PROFILE;
    let groups = FileGroups::by_path(profile);
    let query = Query { value_type: profile.meta().default_value_type, ..Query::default() };
    bencher
        .counter(ItemsCount::new(profile.samples().len()))
        .bench(|| attribute(profile, &groups, &query, &CancelFlag::new()));
}

/// One item is one path: most are clean already, as in real profiles.
#[divan::bench]
fn clean_paths(bencher: Bencher<'_, '_>) {
    const SPELLINGS: [&str; 8] = [
        "/usr/lib/go/src/runtime/proc.go",
        "/home/dev/src/shop/internal/billing/ledger.go",
        "src/main.rs",
        "/rustc/0123456789abcdef0123456789abcdef01234567/library/core/src/iter/adapters/map.rs",
        "./csu/../sysdeps/x86_64/start.S",
        r"C:\Users\dev\.cargo\registry\src\index\serde-1.0.0\src\de\mod.rs",
        "file:///home/dev/app/dist/server%20side.js",
        "[kernel.kallsyms]",
    ];
    bencher.counter(ItemsCount::new(SPELLINGS.len())).bench(|| {
        for spelling in SPELLINGS {
            black_box(clean(black_box(spelling)));
        }
    });
}
