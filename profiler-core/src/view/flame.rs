//! A flame graph as plain data: boxes with their texts, for whoever draws them.
//!
//! What is not here: pixels and colours, and where on disk a file is.

use rustc_hash::FxHashMap;

use super::compare::Sides;
use super::data;
use super::heat::{self, Mark};
use super::label;
use super::summary::Numbers;
use crate::attribute::analysis::{Analysis, ComparedTo};
use crate::attribute::choices::ExecutorNames;
use crate::attribute::compare::{Pair, SideCost};
use crate::attribute::tree::{CallTree, TreeFunction, TreeNode};
use crate::attribute::{Cost, GroupId, Place};
use crate::cancel::{CancelFlag, Cancelled};

/// Boxes of a base that are looked up; what is narrower than all of them counts as nothing there.
const BASE_BOXES: usize = 200_000;

/// The boxes of a profile. All texts are harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flame {
    /// What everything is: `3.52s cpu`.
    pub title: String,
    /// Σ|v| of the kept samples: the width of everything.
    pub total: i64,
    /// What the boxes are of.
    pub functions: Vec<FlameFunction>,
    /// Callers before callees.
    pub boxes: Vec<FlameBox>,
    /// Boxes too narrow to be listed.
    pub omitted: usize,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameFunction {
    /// Its name as it is shown.
    pub name: String,
    /// Its file as it is shown; empty when unknown.
    pub place: String,
    /// Its file.
    pub file: GroupId,
    /// Where it starts, a line of the profile, 1-based; `None` when unknown.
    pub line: Option<u32>,
    /// Whether it is hand-written code of the workspace.
    pub is_own: bool,
}

/// A function under a chain of callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameBox {
    /// Its caller in [`Flame::boxes`].
    pub parent: Option<usize>,
    /// In [`Flame::functions`].
    pub function: usize,
    /// Its width.
    pub value: i64,
    /// Share and value: `34.0% 1.20s`; in a comparison what changed: `▲ +7.7pp 925ms→1.20s`.
    pub label: String,
    /// In a comparison, how it changed.
    pub change: Option<Mark>,
}

/// The flame graph of what is selected, of its `top` widest boxes.
pub fn flame(analysis: &Analysis, top: usize, cancel: &CancelFlag) -> Result<Flame, Cancelled> {
    let CallTree { total, nodes, functions, omitted } = selected_tree(analysis, top, cancel)?;
    let numbers = Numbers::of(analysis);
    let boxed = |node: TreeNode| FlameBox {
        parent: node.parent,
        function: node.function,
        value: node.value,
        label: format!("{} {}", numbers.share(node.value), numbers.value(node.value)),
        change: None,
    };
    Ok(Flame {
        title: format!("{} {}", numbers.value(total), data::shown(numbers.kind())),
        total,
        functions: functions.iter().map(|function| named(analysis, function)).collect(),
        boxes: nodes.into_iter().map(boxed).collect(),
        omitted,
    })
}

/// The flame graph of a comparison: the boxes and widths of the new profile, each with what it was in the base,
/// where the same functions called each other. What is gone has no box.
pub fn change_flame(
    analysis: &Analysis,
    compared: &ComparedTo,
    top: usize,
    cancel: &CancelFlag,
) -> Result<Flame, Cancelled> {
    let base = &compared.base;
    let new_tree = selected_tree(analysis, top, cancel)?;
    let mut chains = Chains::default();
    let own = chains.of(analysis, &new_tree);
    let mut values = |side: &Analysis, value_type| -> Result<FxHashMap<usize, i64>, Cancelled> {
        let counted = tree(side, value_type, BASE_BOXES, cancel)?;
        let found = chains.of(side, &counted);
        Ok(found.into_iter().zip(counted.nodes).map(|(chain, node)| (chain, node.value)).collect())
    };
    let before = values(base, base.value_type)?;
    let samples = match (analysis.profile.sample_count_type(), base.profile.sample_count_type()) {
        (Some(new), Some(old)) => Some((values(analysis, new)?, values(base, old)?)),
        _ => None,
    };
    let sides = Sides::of(analysis, compared);
    let (total, omitted) = (new_tree.total, new_tree.omitted);
    let boxes = new_tree.nodes.iter().zip(own).map(|(node, chain)| {
        let side = |value: i64, samples: Option<&FxHashMap<usize, i64>>, is_there: bool| SideCost {
            cost: Cost { cumulative: value, ..Cost::default() },
            samples: samples.map(|samples| samples.get(&chain).copied().unwrap_or_default()),
            // Which row is nobody's matter; that there is one decides between a change and what is new.
            row: is_there.then_some(0),
        };
        let old = before.get(&chain).copied();
        let (new_samples, old_samples) = samples.as_ref().map_or((None, None), |(new, old)| (Some(new), Some(old)));
        let pair =
            Pair::new(side(node.value, new_samples, true), side(old.unwrap_or_default(), old_samples, old.is_some()));
        let change = sides.change(&pair);
        FlameBox {
            parent: node.parent,
            function: node.function,
            value: node.value,
            label: label::change(&sides, &change, false, label::Style::default()),
            change: Some(if change.is_shown() { heat::mark(&change) } else { Mark::Level(0) }),
        }
    });
    Ok(Flame {
        title: sides.amounts_of_both(),
        total,
        boxes: boxes.collect(),
        functions: new_tree.functions.iter().map(|function| named(analysis, function)).collect(),
        omitted,
    })
}

/// Numbers of chains of callers, the same in every tree: functions are one when their name and file are.
#[derive(Default)]
struct Chains {
    functions: FxHashMap<(String, String), usize>,
    /// By the caller's chain, 0 for the outermost, and function.
    chains: FxHashMap<(usize, usize), usize>,
}

impl Chains {
    /// The chain of each node of a tree.
    fn of(&mut self, analysis: &Analysis, tree: &CallTree) -> Vec<usize> {
        let functions: Vec<usize> = (tree.functions.iter())
            .map(|function| {
                let file = analysis.groups.display(&analysis.profile, function.file).to_owned();
                let next = self.functions.len();
                *self.functions.entry((function.name.clone(), file)).or_insert(next)
            })
            .collect();
        let mut chains: Vec<usize> = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            let above = node.parent.map_or(0, |parent| chains[parent]);
            let next = self.chains.len() + 1;
            chains.push(*self.chains.entry((above, functions[node.function])).or_insert(next));
        }
        chains
    }
}

/// The call tree, in which the executors of asynchronous code are one box each time, but for those of the workspace.
fn tree(analysis: &Analysis, value_type: usize, top: usize, cancel: &CancelFlag) -> Result<CallTree, Cancelled> {
    let executors = ExecutorNames::known();
    let is_folded = |name: &str, file| executors.have(name) && !is_own(analysis, file);
    analysis.stacks.tree(&analysis.profile, value_type, &is_folded, top, cancel)
}

/// That of the selected type, on the scale of the costs.
fn selected_tree(analysis: &Analysis, top: usize, cancel: &CancelFlag) -> Result<CallTree, Cancelled> {
    let mut tree = tree(analysis, analysis.value_type, top, cancel)?;
    tree.total = analysis.on_scale(tree.total);
    for node in &mut tree.nodes {
        node.value = analysis.on_scale(node.value);
    }
    Ok(tree)
}

/// Whether a file is hand-written code of the workspace.
fn is_own(analysis: &Analysis, file: GroupId) -> bool {
    let placement = analysis.groups.get(file).placement.as_ref();
    placement.is_some_and(|placement| placement.place == Place::Workspace)
}

fn named(analysis: &Analysis, function: &TreeFunction) -> FlameFunction {
    let file = data::shown(analysis.groups.display(&analysis.profile, function.file)).into_owned();
    let line = function.start_line.is_known().then_some(function.start_line.0);
    FlameFunction {
        name: if function.name.is_empty() { "unknown".to_owned() } else { data::shown(&function.name).into_owned() },
        place: match line {
            Some(line) if !file.is_empty() => format!("{file}:{line}"),
            _ => file,
        },
        file: function.file,
        line,
        is_own: is_own(analysis, function.file),
    }
}
