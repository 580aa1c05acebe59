//! Writes a large file of every format to a folder, for `tests/measure-formats`:
//! `make-large-formats FOLDER [PART]`, where a part of 10 is a tenth of the size. And decodes a request
//! of OTLP with the library's own structs, the least that reading one can take: `--decode-otlp FILE`.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
use perflens_tests::large_formats::FORMATS;
use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: make-large-formats FOLDER [PART] | --decode-otlp FILE";
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().ok_or(usage)?;
    if first == "--decode-otlp" {
        let data = ProfilesData::decode(&*std::fs::read(arguments.next().ok_or(usage)?)?)?;
        let scopes = data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        let samples = scopes.flat_map(|scope| &scope.profiles).flat_map(|profile| &profile.samples);
        let sum: i64 = samples.flat_map(|sample| &sample.values).sum();
        return Ok(writeln!(std::io::stdout(), "{sum}")?);
    }
    let folder = PathBuf::from(first);
    let part = arguments.next().map_or(Ok(1), |part| part.parse())?;
    for format in FORMATS {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(folder.join(format.file))?);
        format.write(&mut file, part)?;
    }
    Ok(())
}
