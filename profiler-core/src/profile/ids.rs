//! Indexes into the tables of one [`Profile`](super::Profile), one type per table, so that
//! a function can't be looked up among locations.
//!
//! Row 0 of every table stands for "nothing": the empty string, no file, no function, no
//! mapping, a location that the file names but does not define. So an id is never optional
//! and looking one up never fails.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Row 0, which stands for "nothing".
            pub const NONE: Self = Self(0);

            /// The row as an index into a column.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// Whether this is row 0.
            #[inline]
            pub fn is_none(self) -> bool {
                self.0 == 0
            }
        }
    };
}

id! {
    /// A row of the string table. Row 0 is the empty string.
    StrId
}
id! {
    /// A row of the file table: one lexically cleaned path. Row 0 is "no file".
    FileId
}
id! {
    /// A row of the function table. Row 0 is a function without name and file.
    FuncId
}
id! {
    /// A row of the mapping table (a binary or library in memory). Row 0 is "no mapping".
    MapId
}
id! {
    /// A row of the location table. Row 0 is a location the file refers to without defining it.
    LocId
}
