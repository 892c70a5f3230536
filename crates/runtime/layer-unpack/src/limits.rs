//! What a layer may cost.

/// Bounds of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of the archive without compression.
    pub bytes: u64,
    /// Most headers of the archive, those of long names included.
    pub entries: u64,
    /// Most bytes without compression per compressed byte, once [`ratio_from`](Self::ratio_from) is passed.
    pub ratio: u64,
    /// From how many bytes on the ratio counts: a small file of zeros is no bomb.
    pub ratio_from: u64,
    /// Most directories above an entry: trees are walked with a descriptor for each.
    pub depth: usize,
    /// Most bytes of one header for long names and attributes.
    pub extended_header: usize,
    /// Largest window of zstd, bytes, which is what decoding takes of memory.
    pub window: u64,
}

impl Default for Limits {
    /// Wide enough for every image that is meant well: 64 GiB, a million entries. Deflate makes at most 1,032 bytes of one, files of zeros
    /// aside hardly ever more than 20.
    fn default() -> Self {
        Self {
            bytes: 64 << 30,
            entries: 1_000_000,
            ratio: 400,
            ratio_from: 1 << 30,
            depth: 200,
            extended_header: 1 << 20,
            window: 64 << 20,
        }
    }
}
