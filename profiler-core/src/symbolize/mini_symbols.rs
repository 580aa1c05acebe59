//! `.gnu_debugdata`: an ELF file with the symbols that stripping removed, packed by xz into a
//! section of the binary.

use std::io::Read;

use super::elf::Elf;

/// Largest such file after unpacking. The real ones are a few MiB.
const MAX_SIZE: u64 = 256 << 20;
/// Most memory for unpacking, in KiB; xz's strongest setting takes 65 MiB.
const MAX_MEMORY: u32 = 128 << 10;

/// Unpacks the symbols of a binary, if it has such a section.
pub(super) fn unpack(binary: &Elf) -> Option<Elf> {
    let packed = binary.section(".gnu_debugdata")?;
    let mut bytes = Vec::new();
    let read =
        lzma_rust2::XzReader::new_mem_limit(packed, false, MAX_MEMORY).take(MAX_SIZE).read_to_end(&mut bytes).ok()?;
    (read as u64).lt(&MAX_SIZE).then(|| Elf::from_bytes(bytes).ok()).flatten()
}
