//! A benchmark that chooses its iterations by itself.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use measured_sums::{hot, steady};

fn sums(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sums");
    group.bench_function("both", |bencher| {
        bencher.iter(|| hot(black_box(20_000)) ^ steady(black_box(20_000)));
    });
    group.finish();
}

criterion_group!(benches, sums);
criterion_main!(benches);
