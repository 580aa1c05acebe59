//! Prints what a recording says of itself, for `tests/measure-record`: recording-figures FILE.plp
#![expect(clippy::print_stdout, reason = "it is what it is for")]

use std::fs::File;
use std::io::BufReader;

use profiler_ebpf::protocol::{Event, Reader, StackEnd, event};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("which file?")?;
    let mut events = Reader::with_magic(BufReader::new(File::open(&path)?))?;
    let (mut samples, mut complete, mut frames, mut lost) = (0_u64, 0_u64, 0, 0);
    let mut progress = None;
    while let Some(event) = events.read::<Event>()? {
        match event.kind {
            Some(event::Kind::Sample(sample)) => {
                samples += 1;
                frames += sample.user.len();
                complete += u64::from(sample.end == StackEnd::Complete as i32);
            }
            Some(event::Kind::Lost(more)) => lost += more.samples,
            Some(event::Kind::End(end)) => progress = end.progress,
            _ => {}
        }
    }
    let progress = progress.ok_or("it was cut off")?;
    println!(
        "samples={samples} complete={:.2} frames={:.1} lost={lost} cpu_ms={} sampling_ms={} memory_mib={}",
        complete as f64 * 100.0 / samples.max(1) as f64,
        frames as f64 / samples.max(1) as f64,
        progress.recorder_ns / 1_000_000,
        progress.sampling_ns / 1_000_000,
        progress.memory >> 20,
    );
    Ok(())
}
