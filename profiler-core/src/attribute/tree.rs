//! The call tree of all samples, from the outermost caller inwards: what a flame graph draws.
//!
//! Frames of one function under the same caller are one node; a function that calls itself has
//! a node below its node. Frames that are folded are one node where they follow one another. Values are magnitudes, Σ|v|, since widths can't be negative: a node
//! never weighs less than those below it, and the outermost add up to the total.
//!
//! A profile has as many nodes as it has different beginnings of stacks, which may be millions;
//! nobody can see them. So the heaviest are kept, and the rest is counted.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::frames::{FrameRows, FunctionKey};
use super::{GroupId, Stacks};
use crate::cancel::{CancelFlag, Cancelled};
use crate::profile::{LineNo, Profile};

/// Nodes while counting: 200 MB of them at most. What is deeper then counts for its caller.
const MAX_COUNTED: usize = 4_000_000;

/// What frames that are folded are called: they run others' code, and nobody looks for it there.
pub const FOLDED: &str = "async executor";

/// The heaviest nodes of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTree {
    /// Σ|v| of the kept samples.
    pub total: i64,
    /// Parents before their children, else by falling value.
    pub nodes: Vec<TreeNode>,
    /// What the nodes are of.
    pub functions: Vec<TreeFunction>,
    /// Nodes that were left out.
    pub omitted: usize,
}

/// A function under a chain of callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeNode {
    /// Its caller in [`CallTree::nodes`]; `None` for the outermost.
    pub parent: Option<usize>,
    /// In [`CallTree::functions`].
    pub function: usize,
    /// Σ|v| of the samples that begin with this chain of callers.
    pub value: i64,
}

/// A function of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFunction {
    /// Its demangled name; empty for frames that are an address only. [`FOLDED`] for those that were folded.
    pub name: String,
    /// Its file.
    pub file: GroupId,
    /// Where its declaration starts.
    pub start_line: LineNo,
}

/// A node while counting; 0 is the root, which stands for everything.
#[derive(Clone, Copy, Default)]
struct Counted {
    parent: u32,
    function: u32,
    value: i128,
}

impl Stacks {
    /// The tree of a value type, of its `top` heaviest nodes. The profile is the one that the
    /// stacks were made of; functions, by demangled name and file, may be folded.
    pub fn tree(
        &self,
        profile: &Profile,
        value_type: usize,
        is_folded: &dyn Fn(&str, GroupId) -> bool,
        top: usize,
        cancel: &CancelFlag,
    ) -> Result<CallTree, Cancelled> {
        let folded: Vec<bool> = self.frames.functions.iter().map(|key| is_folded(&key.name, key.file)).collect();
        let counted = self.count_tree(profile, value_type, &folded, cancel)?;
        let mut order: Vec<usize> = (1..counted.len()).filter(|&at| counted[at].value > 0).collect();
        // Nodes come after their parents, so equal ones stay in that order.
        order.sort_by_key(|&at| (Reverse(counted[at].value), at));
        let omitted = order.len().saturating_sub(top);
        order.truncate(top);
        let mut tree = CallTree { total: to_i64(counted[0].value), omitted, ..CallTree::default() };
        let mut position: FxHashMap<u32, usize> = FxHashMap::default();
        let mut functions: FxHashMap<u32, usize> = FxHashMap::default();
        for at in order {
            let node = counted[at];
            let function = *functions.entry(node.function).or_insert_with(|| {
                let key = self.frames.functions.get(node.function as usize);
                let of_key = |key: &FunctionKey| (key.name.to_string(), key.file, key.start_line);
                let (name, file, start_line) =
                    key.map_or_else(|| (FOLDED.to_owned(), GroupId::NONE, LineNo::UNKNOWN), of_key);
                tree.functions.push(TreeFunction { name, file, start_line });
                tree.functions.len() - 1
            });
            position.insert(u32::try_from(at).unwrap_or(u32::MAX), tree.nodes.len());
            let parent = position.get(&node.parent).copied();
            tree.nodes.push(TreeNode { parent, function, value: to_i64(node.value) });
        }
        Ok(tree)
    }

    /// Functions that are `folded` are the one beyond all others.
    fn count_tree(
        &self,
        profile: &Profile,
        value_type: usize,
        folded: &[bool],
        cancel: &CancelFlag,
    ) -> Result<Vec<Counted>, Cancelled> {
        let one = u32::try_from(folded.len()).unwrap_or(u32::MAX);
        let mut nodes = vec![Counted::default()];
        let mut children: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut frames: Vec<FrameRows> = Vec::new();
        self.each_sample(profile, value_type, cancel, |_, value, stack| {
            frames.clear();
            frames.extend(stack.iter().flat_map(|&location| self.frames.of(location)));
            let weight = i128::from(value.unsigned_abs());
            let mut at = 0;
            nodes[0].value += weight;
            for frame in frames.iter().rev() {
                let own = frame.function();
                let function = if folded[own as usize] { one } else { own };
                if function == one && at != 0 && nodes[at as usize].function == one {
                    continue;
                }
                at = match children.get(&(at, function)) {
                    Some(&child) => child,
                    None if nodes.len() < MAX_COUNTED => {
                        let child = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
                        nodes.push(Counted { parent: at, function, value: 0 });
                        children.insert((at, function), child);
                        child
                    }
                    None => break,
                };
                nodes[at as usize].value += weight;
            }
        })?;
        Ok(nodes)
    }
}

/// Totals of one value type fit: decoding has checked that.
fn to_i64(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
