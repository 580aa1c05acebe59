//! Profiles of V8, the engine of Node.js, Deno and Chrome: `.cpuprofile`, `.heapprofile`, and
//! traces of Chrome ([`trace`]).
//!
//! V8 knows the line that was executing only for the innermost function (`positionTicks`); of
//! callers it knows the function. So the lines of a profile have a cost of their own, and only
//! functions have one with calls. What V8 inlined are nodes like others; built-ins such as
//! `sort` are none, their time is on the line that calls them.
//!
//! Lines of call frames count from 0 and are where the function starts; those of ticks count
//! from 1.
//!
//! What is not here: from generated code to its source; that needs files of the workspace
//! (`paths::source_map`).

mod stacks;
mod trace;
mod tree;

use super::json;
use super::sink::Sink;
use super::{Confidence, Context, DecodeError, Format, Input, text};
use crate::profile::{Label, LineDetail, Profile, ValueType};
use stacks::{Functions, is_idle, is_root, link_parents, not_v8, path};
use tree::{File, Node};

pub(super) use trace::FORMAT as TRACE;

pub(super) const CPU: Format = Format { name: "cpuprofile", sniff: sniff_cpu, decode: decode_cpu };
pub(super) const HEAP: Format = Format { name: "heapprofile", sniff: sniff_heap, decode: decode_heap };

fn sniff_cpu(prefix: &[u8]) -> Confidence {
    let Some(content) = json::beginning(prefix, &['{']) else { return Confidence::No };
    let has = |word: &str| content.contains(word);
    let is_list = has("\"nodes\"") && has("\"callFrame\"");
    let is_tree = has("\"head\"") && has("\"functionName\"") && has("\"hitCount\"");
    if (is_list || is_tree) && !has("\"traceEvents\"") { Confidence::Likely } else { Confidence::No }
}

fn sniff_heap(prefix: &[u8]) -> Confidence {
    let Some(content) = json::beginning(prefix, &['{']) else { return Confidence::No };
    let has = |word: &str| content.contains(word);
    if has("\"head\"") && has("\"callFrame\"") && has("\"selfSize\"") { Confidence::Certain } else { Confidence::No }
}

fn read(input: &mut Input<'_>) -> Result<File, DecodeError> {
    let bytes = input.read_all()?;
    let all = text::decode(&bytes).ok_or_else(|| DecodeError::invalid("it is not text"))?;
    let mut file = tree::read(&all)?;
    if file.has_call_frames {
        for node in &mut file.nodes {
            node.frame.line += 1;
            node.frame.column += 1;
        }
    }
    Ok(file)
}

fn decode_cpu(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let mut file = read(input)?;
    if file.nodes.is_empty() {
        return Err(not_v8("CPU profile of V8"));
    }
    let by_id = link_parents_unless_tree(&mut file);
    // Some tools write samples alone.
    if file.nodes.iter().all(|node| node.hit_count == 0) {
        for sample in &file.samples {
            if let Some(&node) = by_id.get(sample) {
                file.nodes[node].hit_count += 1;
            }
        }
    }
    let mut sink = Sink::new(CPU.name, vec![ValueType::new("samples", "count")], context);
    sink.builder.meta().line_detail = LineDetail::LeafOnly;
    set_time(&mut sink, &file);
    let idle = file.nodes.iter().filter(|node| is_idle(&node.frame)).map(|node| node.hit_count).sum();
    emit(&file.nodes, &mut Functions::default(), &[], &mut sink)?;
    note_idle(&mut sink, idle);
    sink.finish()
}

/// Makes samples of what nodes were hit, with the line where it is known.
fn emit(nodes: &[Node], functions: &mut Functions, labels: &[Label], sink: &mut Sink<'_>) -> Result<(), DecodeError> {
    let known = functions.locations(nodes, sink)?;
    let mut stack = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let mut rest = node.hit_count;
        for &(line, ticks) in node.ticks.iter().filter(|(_, ticks)| *ticks > 0) {
            stack.clear();
            stack.push(functions.location(&node.frame, line, sink)?);
            stack.extend(path(nodes, index).skip(usize::from(!is_root(node))).map(|caller| known[caller]));
            sink.sample(&stack, &[ticks], labels)?;
            rest -= ticks;
        }
        if rest > 0 {
            // What has no line: V8 says so little of its own work.
            stack.clear();
            stack.extend(path(nodes, index).map(|node| known[node]));
            sink.sample(&stack, &[rest], labels)?;
        }
    }
    Ok(())
}

fn link_parents_unless_tree(file: &mut File) -> rustc_hash::FxHashMap<i64, usize> {
    if file.is_tree {
        return file.nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
    }
    link_parents(&mut file.nodes)
}

fn set_time(sink: &mut Sink<'_>, file: &File) {
    // The older form counts in seconds.
    let to_ns = if file.is_tree { 1e9 } else { 1e3 };
    let duration = (file.end - file.start) * to_ns;
    let count = file.samples.len().max(usize::from(file.samples.is_empty()));
    let meta = sink.builder.meta();
    meta.duration_ns = super::fraction::nearest(duration).filter(|&duration| duration > 0);
    if let Some(period) = super::fraction::nearest(duration / count as f64).filter(|_| !file.samples.is_empty()) {
        meta.set_average_period(period.max(0), "wall");
    }
}

fn note_idle(sink: &mut Sink<'_>, idle: i64) {
    if idle > 0 {
        sink.builder.note(format!("{idle} samples are of an idle engine; leave them out with the filter fn!=(idle)"));
    }
}

fn decode_heap(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let file = read(input)?;
    if file.nodes.is_empty() || !file.is_tree {
        return Err(not_v8("heap profile of V8"));
    }
    let mut sink = Sink::new(HEAP.name, vec![ValueType::new("inuse_space", "bytes")], context);
    sink.builder.meta().line_detail = LineDetail::FunctionOnly;
    let known = Functions::default().locations(&file.nodes, &mut sink)?;
    let mut stack = Vec::new();
    // The list of samples in the file is another selection than the sizes of the tree.
    for index in 0..file.nodes.len() {
        let Some(size) = sink.rounding.nearest(file.nodes[index].self_size).filter(|&size| size > 0) else { continue };
        stack.clear();
        stack.extend(path(&file.nodes, index).map(|node| known[node]));
        sink.sample(&stack, &[size], &[])?;
    }
    sink.finish()
}
