//! Files of JSON, written piece by piece.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::text::address;
use super::{Program, Tree, file, function_of, line_of, name};
use crate::large_profile::{SITES_PER_FUNCTION, start_line};

/// `[…]` with commas.
fn list<T: std::fmt::Display>(out: &mut dyn Write, items: impl IntoIterator<Item = T>) -> io::Result<()> {
    write!(out, "[")?;
    for (at, item) in items.into_iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        write!(out, "{comma}{item}")?;
    }
    write!(out, "]")
}

pub(super) fn speedscope(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{{\"frames\":")?;
    let frame = |site| {
        let function = function_of(site);
        json!({ "name": name(function), "file": file(function, "py"), "line": line_of(site) })
    };
    list(out, (0..program.sites()).map(frame))?;
    write!(
        out,
        "}},\"profiles\":[{{\"type\":\"sampled\",\"name\":\"shop\",\"unit\":\"seconds\",\"startValue\":0,\"endValue\":1,\"samples\":["
    )?;
    let mut comma = "";
    program.each_stack(|stack| {
        write!(out, "{comma}")?;
        comma = ",";
        list(out, stack)
    })?;
    write!(out, "],\"weights\":")?;
    list(out, (0..program.samples).map(|_| "0.01"))?;
    write!(out, "}}]}}")
}

fn call_frame(site: u64) -> Value {
    let function = function_of(site);
    let url = format!("file://{}", file(function, "js"));
    json!({ "functionName": name(function), "scriptId": "1", "url": url, "lineNumber": start_line(function) - 1, "columnNumber": 0 })
}

/// A node of V8's tree; ids begin with 1.
fn v8_node(tree: &Tree, at: usize) -> Value {
    let node = &tree.nodes[at];
    if at == 0 {
        return json!({ "functionName": "(root)", "scriptId": "0", "url": "", "lineNumber": -1, "columnNumber": -1 });
    }
    call_frame(node.site)
}

/// So many samples come of each stack, as there are fewer nodes than samples in long recordings.
const TIMES: usize = 100;

pub(super) fn cpuprofile(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let tree = program.tree()?;
    let children = tree.by_parent();
    write!(out, "{{\"nodes\":")?;
    let node = |at: usize| {
        let own = tree.nodes[at].own * TIMES as u64;
        let mut node = json!({ "id": at + 1, "callFrame": v8_node(&tree, at), "hitCount": own });
        if !children[at].is_empty() {
            node["children"] = children[at].iter().map(|child| child + 1).collect();
        }
        if own > 0 {
            node["positionTicks"] = json!([{ "line": line_of(tree.nodes[at].site), "ticks": own }]);
        }
        node
    };
    list(out, (0..tree.nodes.len()).map(node))?;
    let count = tree.leaves.len() * TIMES;
    write!(out, ",\"startTime\":1000,\"endTime\":{},\"samples\":", 1000 + count * 125)?;
    list(out, tree.leaves.iter().flat_map(|leaf| std::iter::repeat_n(leaf + 1, TIMES)))?;
    write!(out, ",\"timeDeltas\":")?;
    list(out, std::iter::repeat_n(125, count))?;
    write!(out, "}}")
}

pub(super) fn heapprofile(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    fn node(out: &mut dyn Write, tree: &Tree, children: &[Vec<usize>], at: usize) -> io::Result<()> {
        let (frame, size) = (v8_node(tree, at), tree.nodes[at].own * 512);
        write!(out, "{{\"callFrame\":{frame},\"selfSize\":{size},\"id\":{},\"children\":[", at + 1)?;
        for (index, &child) in children[at].iter().enumerate() {
            if index > 0 {
                write!(out, ",")?;
            }
            node(out, tree, children, child)?;
        }
        write!(out, "]}}")
    }
    let tree = program.tree()?;
    write!(out, "{{\"head\":")?;
    node(out, &tree, &tree.by_parent(), 0)?;
    write!(out, ",\"samples\":[]}}")
}

/// A trace of Chrome with V8's profile in pieces.
pub(super) fn trace(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    const PIECE: usize = 500;
    let tree = program.tree()?;
    let event = |name: &str, data: &Value| json!({ "name": name, "ph": "P", "id": "0x1", "pid": 7, "tid": 8, "ts": 1000, "cat": "v8", "args": { "data": data } });
    write!(out, "{{\"traceEvents\":[{}", event("Profile", &json!({ "startTime": 1000 })))?;
    let mut known = 0;
    for leaves in tree.leaves.chunks(PIECE) {
        let until = leaves.iter().max().map_or(0, |&leaf| leaf + 1).max(known);
        let node = |at: usize| {
            let mut node = json!({ "id": at + 1, "callFrame": v8_node(&tree, at) });
            if at > 0 {
                node["parent"] = json!(tree.nodes[at].parent + 1);
            }
            node
        };
        let nodes: Vec<Value> = (known..until).map(node).collect();
        known = until;
        let all = || leaves.iter().flat_map(|&leaf| std::iter::repeat_n(leaf, TIMES));
        let samples: Vec<usize> = all().map(|leaf| leaf + 1).collect();
        let lines: Vec<u64> = all().map(|leaf| line_of(tree.nodes[leaf].site)).collect();
        let deltas = vec![125; samples.len()];
        let profile = json!({ "nodes": nodes, "samples": samples });
        let chunk = json!({ "cpuProfile": profile, "timeDeltas": deltas, "lines": lines });
        write!(out, ",\n{}", event("ProfileChunk", &chunk))?;
    }
    write!(out, "]}}")
}

/// The Firefox profiler's format, of version 50: tables in the thread.
pub(super) fn firefox(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let tree = program.tree()?;
    let functions = program.functions();
    let sites = || 0..program.sites();
    write!(
        out,
        "{{\"meta\":{{\"interval\":1,\"startTime\":1000,\"preprocessedProfileVersion\":50,\"product\":\"shop\"}},\"libs\":[],"
    )?;
    write!(
        out,
        "\"threads\":[{{\"name\":\"main\",\"pid\":\"7\",\"tid\":8,\"samples\":{{\"weightType\":\"samples\",\"stack\":"
    )?;
    list(out, tree.leaves.iter().map(|leaf| leaf - 1))?;
    write!(out, ",\"time\":")?;
    list(out, 0..tree.leaves.len())?;
    write!(out, "}},\"stackTable\":{{\"prefix\":")?;
    let nodes = || tree.nodes.iter().skip(1);
    list(out, nodes().map(|node| node.parent.checked_sub(1).map_or("null".to_owned(), |at| at.to_string())))?;
    write!(out, ",\"frame\":")?;
    list(out, nodes().map(|node| node.site))?;
    write!(out, "}},\"frameTable\":{{\"address\":")?;
    list(out, sites().map(|_| -1))?;
    write!(out, ",\"inlineDepth\":")?;
    list(out, sites().map(|_| 0))?;
    write!(out, ",\"func\":")?;
    list(out, sites().map(function_of))?;
    write!(out, ",\"line\":")?;
    list(out, sites().map(line_of))?;
    write!(out, "}},\"funcTable\":{{\"name\":")?;
    list(out, 0..functions)?;
    write!(out, ",\"resource\":")?;
    list(out, (0..functions).map(|_| -1))?;
    write!(out, ",\"fileName\":")?;
    list(out, (0..functions).map(|function| functions + function))?;
    write!(out, ",\"lineNumber\":")?;
    list(out, (0..functions).map(start_line))?;
    write!(out, "}},\"resourceTable\":{{\"lib\":[]}},\"stringArray\":")?;
    let texts = (0..functions).map(name).chain((0..functions).map(|function| file(function, "js")));
    list(out, texts.map(|text| json!(text)))?;
    write!(out, "}}]}}")
}

pub(super) fn stackprof(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let (mut raw, mut lines) = (Vec::new(), Vec::new());
    program.each_stack(|stack| {
        for numbers in [&mut raw, &mut lines] {
            numbers.push(stack.len() as u64);
        }
        raw.extend(stack.iter().map(|&site| function_of(site) + 1));
        lines.extend(stack.iter().map(|&site| line_of(site)));
        for numbers in [&mut raw, &mut lines] {
            numbers.push(1);
        }
        Ok(())
    })?;
    let count = program.samples;
    write!(
        out,
        "{{\"version\":1.2,\"mode\":\"cpu\",\"interval\":1000,\"samples\":{count},\"gc_samples\":0,\"missed_samples\":0,\"frames\":{{"
    )?;
    for function in 0..program.functions() {
        let frame = json!({
            "name": name(function), "file": file(function, "rb"), "line": start_line(function),
            "total_samples": 9, "samples": 1,
        });
        write!(out, "{}\"{}\":{frame}", if function > 0 { "," } else { "" }, function + 1)?;
    }
    write!(out, "}},\"raw\":")?;
    list(out, raw)?;
    write!(out, ",\"raw_lines\":")?;
    list(out, lines)?;
    write!(out, "}}")
}

pub(super) fn dhat(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "{{\"dhatFileVersion\":2,\"mode\":\"heap\",\"verb\":\"Allocated\",\"bklt\":true,\"bkacc\":true,\"tu\":\"instrs\",\
         \"Mtu\":\"Minstr\",\"tuth\":500,\"cmd\":\"shop\",\"pid\":7,\"te\":9000000,\"tg\":8000000,\"pps\":["
    )?;
    let mut comma = "";
    program.each_stack(|stack| {
        write!(
            out,
            "{comma}{{\"tb\":512,\"tbk\":1,\"tl\":90,\"mb\":512,\"mbk\":1,\"gb\":0,\"gbk\":0,\"eb\":0,\"ebk\":0,\"rb\":8,\"wb\":8,\"fs\":"
        )?;
        comma = "\n,";
        list(out, stack.iter().rev().map(|&site| site + 1))?;
        write!(out, "}}")
    })?;
    write!(out, "],\"ftbl\":[\"[root]\"")?;
    for site in 0..program.sites() {
        let function = function_of(site);
        let file = file(function, "c");
        let base = file.rsplit('/').next().unwrap_or_default();
        write!(out, "\n,\"{:#X}: {} ({base}:{})\"", address(site), name(function), line_of(site))?;
    }
    write!(out, "]}}")
}

pub(super) fn scalene(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    let mut files: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for function in 0..program.functions() {
        let lines = files.entry(file(function, "py")).or_default();
        lines.extend((function * SITES_PER_FUNCTION..(function + 1) * SITES_PER_FUNCTION).map(|site| {
            json!({
                "lineno": line_of(site), "line": "        total += handle(request)\n", "n_cpu_percent_python": 0.0005,
                "n_cpu_percent_c": 0.0001, "n_sys_percent": 0.0, "n_malloc_mb": 0.25, "n_peak_mb": 0.5, "n_avg_mb": 0.1,
                "n_copy_mb_s": 0.0, "n_usage_fraction": 0.0, "n_python_fraction": 0.5,
            })
        }));
    }
    write!(out, "{{\"elapsed_time_sec\":60.0,\"files\":{{")?;
    for (at, (file, lines)) in files.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        write!(out, "{comma}{}:{{\"lines\":{},\"functions\":[]}}", json!(file), json!(lines))?;
    }
    write!(out, "}}}}")
}
