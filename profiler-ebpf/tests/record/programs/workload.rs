//! What optimised Rust does to stacks: threads with known shares, recursion, closures, generics, trait
//! objects, async, inlining.

use std::collections::HashMap;
use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::thread;

#[inline(never)]
fn count_words(n: u64) -> u64 {
    let mut words: HashMap<u64, u64> = HashMap::new();
    for i in 0..200 {
        *words.entry(i * n % 97).or_insert(0) += i;
    }
    words.values().sum()
}

#[inline(never)]
fn recursive(n: u64, depth: u32) -> u64 {
    let some: Vec<u64> = (0..8).map(|i| n + i).collect();
    if depth == 0 { some.iter().map(|n| count_words(*n)).sum() } else { black_box(recursive(n + 1, depth - 1)) + some[0] }
}

#[inline(never)]
fn generic<T: std::fmt::Display + Ord>(all: impl Iterator<Item = T>) -> usize {
    let mut texts: Vec<String> = all.map(|item| item.to_string()).collect();
    texts.sort_by(|a, b| b.cmp(a));
    texts.len()
}

trait Work {
    fn work(&self) -> u64;
}

struct Item(u64);

impl Work for Item {
    #[inline(never)]
    fn work(&self) -> u64 {
        generic((0..200).map(|i| i * self.0 % 1009)) as u64
    }
}

/// Pending once, then ready.
struct Later(bool);

impl Future for Later {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

async fn inner(n: u64) -> u64 {
    Later(false).await;
    recursive(n, 3)
}

async fn outer(n: u64) -> u64 {
    inner(n).await + inner(n + 1).await
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}

#[inline(never)]
fn round(n: u64, item: &dyn Work) -> u64 {
    recursive(n, 10) + item.work() + block_on(outer(n))
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    let threads: Vec<_> = (1..=3)
        .map(|share| {
            let name = format!("share-{share}");
            thread::Builder::new().name(name).spawn(move || {
                let item: Box<dyn Work> = Box::new(Item(7));
                (0..rounds * share).map(|n| black_box(round(n, item.as_ref()))).fold(0, u64::wrapping_add)
            })
        })
        .collect();
    for thread in threads {
        black_box(thread.expect("it starts").join().expect("it ends"));
    }
}
