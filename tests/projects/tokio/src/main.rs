//! Four ways to the same work, a quarter of the time each: recursion, a closure, a generic function, and
//! asynchronous tasks of tokio. The work is fixed, so that shares don't depend on what else the machine does.
//! Usage: quarters [ROUNDS]

use std::hint::black_box;

#[inline(never)]
fn burn(rounds: u64) -> u64 {
    let mut x = rounds;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(6364136223846793005).rotate_left(17));
    }
    x
}

const WORK: u64 = 100_000;

#[inline(never)]
fn recursive(depth: u32) -> u64 {
    if depth == 0 { burn(WORK) } else { black_box(recursive(depth - 1)) + 1 } // recursion
}

trait Amount {
    fn rounds(self) -> u64;
}

impl Amount for u64 {
    fn rounds(self) -> u64 {
        self
    }
}

#[inline(never)]
fn generic<A: Amount>(amount: A) -> u64 {
    burn(amount.rounds()) + 1 // generic
}

#[inline(never)]
fn apply(body: &dyn Fn(u64) -> u64) -> u64 {
    body(WORK) + 1
}

async fn inner(rounds: u64) -> u64 {
    // Goes on later, perhaps on another thread.
    tokio::task::yield_now().await;
    burn(rounds) // async
}

async fn price(rounds: u64) -> u64 {
    inner(rounds).await + 1 // awaits
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(500);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let mut sum = 0_u64;
    for _ in 0..rounds {
        sum = sum.wrapping_add(recursive(7));
        sum = sum.wrapping_add(apply(&|rounds| burn(rounds) + 1)); // closure
        sum = sum.wrapping_add(generic(WORK));
        sum = sum.wrapping_add(runtime.block_on(async { tokio::spawn(price(WORK)).await.unwrap() }));
    }
    black_box(sum);
}
