//! Three threads that take one, two and three sixths of the time, in an inlined loop.
//! The work is fixed, so that shares don't depend on what else the machine does.
//! Usage: hot [ROUNDS]

use std::hint::black_box;

#[inline(always)]
fn mix(x: u64) -> u64 {
    x.wrapping_mul(6364136223846793005).rotate_left(17) // hot
}

#[inline(never)]
fn work(rounds: u64) {
    let mut x = rounds;
    for _ in 0..rounds {
        x = black_box(mix(x));
    }
    black_box(x);
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(500);
    let threads: Vec<_> = (1..=3_u64)
        .map(|share| {
            let body = move || (0..rounds * share).for_each(|_| work(100_000)); // each thread
            std::thread::Builder::new().name(format!("share-{share}")).spawn(body).unwrap()
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
