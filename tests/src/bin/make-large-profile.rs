//! Writes the profile that benchmarks and budgets are about to a file:
//! `make-large-profile FILE [SAMPLES]`. A name that ends in `.gz` is compressed as Go
//! compresses its profiles, at the fastest level.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use perflens_tests::large_profile::{FULL, write};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("usage: make-large-profile FILE [SAMPLES]")?);
    let samples = arguments.next().map_or(Ok(FULL), |samples| samples.parse())?;

    let mut file = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    let summary = if path.extension().is_some_and(|extension| extension == "gz") {
        let mut compressed = GzEncoder::new(&mut file, Compression::fast());
        let summary = write(BufWriter::with_capacity(1 << 20, &mut compressed), samples)?;
        compressed.finish()?;
        summary
    } else {
        write(&mut file, samples)?
    };
    file.flush()?;
    writeln!(
        std::io::stdout(),
        "{}: {} samples, {} frames, {} locations, {} bytes before compression, {} in the file",
        path.display(),
        summary.samples,
        summary.frames,
        summary.locations,
        summary.bytes,
        std::fs::metadata(&path)?.len()
    )?;
    Ok(())
}
