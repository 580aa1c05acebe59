//! Large files of every format that can be written by hand, for measuring how fast they are read.
//!
//! All are of programs of [`large_profile`](super::large_profile): the same walks through one call graph, as
//! each tool would have written them. Sizes are such that reading takes longer than starting what reads.
//!
//! What is not here: `perf.data` and flight recordings, which their tools write (`tests/measure-formats`).

mod binary;
mod json;
mod text;

use std::collections::HashMap;
use std::io::{self, Write};

use crate::large_profile::{Graph, Random, SITES_PER_FUNCTION, start_line, words};

/// One kind of file.
#[derive(Clone, Copy)]
pub struct Format {
    /// The name of the file.
    pub file: &'static str,
    /// What perflens calls it.
    pub name: &'static str,
    functions: u32,
    samples: u32,
    write: fn(&Program, &mut dyn Write) -> io::Result<()>,
}

/// All of them.
pub const FORMATS: &[Format] = &[
    Format { file: "pprof.pb", name: "pprof", functions: 8_000, samples: 300_000, write: binary::pprof },
    Format { file: "heap.txt", name: "legacy-heap", functions: 8_000, samples: 100_000, write: text::heap },
    Format { file: "jemalloc.heap", name: "legacy-heap", functions: 8_000, samples: 100_000, write: text::jemalloc },
    Format { file: "otlp.pb", name: "otlp", functions: 8_000, samples: 300_000, write: binary::otlp },
    Format { file: "out.folded", name: "folded", functions: 3_000, samples: 20_000, write: text::folded },
    Format { file: "perf-script.txt", name: "perf-script", functions: 3_000, samples: 20_000, write: text::perf },
    Format { file: "austin.txt", name: "austin", functions: 3_000, samples: 20_000, write: text::austin },
    Format { file: "austin.mojo", name: "mojo", functions: 3_000, samples: 200_000, write: binary::mojo },
    Format { file: "callgrind.out", name: "callgrind", functions: 60_000, samples: 0, write: text::callgrind },
    Format { file: "cachegrind.out", name: "callgrind", functions: 120_000, samples: 0, write: text::cachegrind },
    Format { file: "out.pstats", name: "pstats", functions: 20_000, samples: 0, write: binary::pstats },
    Format { file: "speedscope.json", name: "speedscope", functions: 3_000, samples: 200_000, write: json::speedscope },
    Format { file: "node.cpuprofile", name: "cpuprofile", functions: 3_000, samples: 10_000, write: json::cpuprofile },
    Format {
        file: "node.heapprofile",
        name: "heapprofile",
        functions: 3_000,
        samples: 10_000,
        write: json::heapprofile,
    },
    Format { file: "trace.json", name: "chrome-trace", functions: 3_000, samples: 10_000, write: json::trace },
    Format { file: "firefox.json", name: "firefox", functions: 3_000, samples: 100_000, write: json::firefox },
    Format { file: "stackprof.json", name: "stackprof", functions: 3_000, samples: 100_000, write: json::stackprof },
    Format { file: "dhat.json", name: "dhat", functions: 3_000, samples: 100_000, write: json::dhat },
    Format { file: "scalene.json", name: "scalene", functions: 10_000, samples: 0, write: json::scalene },
];

impl Format {
    /// Writes the file at a part of its size: 1 is all of it, 100 a hundredth.
    pub fn write(&self, out: &mut dyn Write, part: u32) -> io::Result<()> {
        let program = Program {
            graph: Graph { functions: u64::from((self.functions / part).max(20)) },
            samples: if self.samples == 0 { 0 } else { (self.samples / part).max(20) },
        };
        (self.write)(&program, out)?;
        out.flush()
    }
}

/// What was profiled, and how many samples were taken.
struct Program {
    graph: Graph,
    samples: u32,
}

impl Program {
    /// The stack of each sample, root first, as call sites counted from 0.
    fn each_stack(&self, mut take: impl FnMut(&[u64]) -> io::Result<()>) -> io::Result<()> {
        let (mut random, mut stack) = (Random(1), Vec::new());
        for _ in 0..self.samples {
            self.graph.walk(&mut random, &mut stack);
            stack.reverse();
            for site in &mut stack {
                *site -= 1;
            }
            take(&stack)?;
        }
        Ok(())
    }

    fn functions(&self) -> u64 {
        self.graph.functions
    }

    fn sites(&self) -> u64 {
        self.graph.sites()
    }

    /// The call graph as the tree of all stacks.
    fn tree(&self) -> io::Result<Tree> {
        let mut tree = Tree { nodes: vec![Node::default()], children: HashMap::new(), leaves: Vec::new() };
        self.each_stack(|stack| {
            let mut at = 0;
            for &site in stack {
                let next = tree.nodes.len();
                let child = *tree.children.entry((at, site)).or_insert(next);
                if child == next {
                    tree.nodes.push(Node { site, parent: at, own: 0 });
                }
                at = child;
            }
            tree.nodes[at].own += 1;
            tree.leaves.push(at);
            Ok(())
        })?;
        Ok(tree)
    }
}

/// Stacks that share their beginnings. Node 0 is the root, and stands for nothing else.
struct Tree {
    nodes: Vec<Node>,
    children: HashMap<(usize, u64), usize>,
    /// The node of each sample.
    leaves: Vec<usize>,
}

#[derive(Clone, Copy, Default)]
struct Node {
    site: u64,
    parent: usize,
    own: u64,
}

impl Tree {
    /// The children of each node, in the order in which they came.
    fn by_parent(&self) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            all[node.parent].push(at);
        }
        all
    }
}

fn function_of(site: u64) -> u64 {
    site / SITES_PER_FUNCTION
}

fn line_of(site: u64) -> u64 {
    start_line(function_of(site)) + 1 + 3 * (site % SITES_PER_FUNCTION)
}

fn name(function: u64) -> String {
    let (package, word) = words(function);
    format!("{package}.{word}.handle{function}")
}

/// The source file of a function, of this kind.
fn file(function: u64, ending: &str) -> String {
    let file = function / crate::large_profile::FUNCTIONS_PER_FILE;
    let (package, word) = words(file);
    format!("/build/src/shop/services/{package}/{package}_{word}_{file}.{ending}")
}

#[cfg(test)]
mod tests {
    use profiler_core::cancel::CancelFlag;
    use profiler_core::decode::{Limits, decode};

    use super::*;

    #[test]
    fn each_file_is_read_as_what_it_is_and_with_all_that_is_in_it() {
        for format in FORMATS {
            let mut bytes = Vec::new();
            format.write(&mut bytes, 100).unwrap();
            let profile = decode(&*bytes, &Limits::default(), &CancelFlag::new())
                .unwrap_or_else(|error| panic!("{}: {error}", format.file));
            assert_eq!(profile.format(), format.name, "{}", format.file);
            assert!(profile.sum(profile.meta().default_value_type).total > 0, "{}", format.file);
            if format.samples > 0 {
                // Trees and heaps have equal stacks once.
                let samples = profile.samples().len() as u64;
                assert!(samples >= u64::from(format.samples / 100) / 2, "{}: {samples}", format.file);
            }
            assert!(
                profile.notes().iter().all(|note| !note.contains("not there")),
                "{}: {:?}",
                format.file,
                profile.notes()
            );
            let mut again = Vec::new();
            format.write(&mut again, 100).unwrap();
            assert!(bytes == again, "{} is another every time", format.file);
        }
    }
}
