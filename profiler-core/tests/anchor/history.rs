//! Histories of edits whose truth is known: every line carries who it is.

use std::collections::HashSet;

/// Numbers that look like chance and are the same every time.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below `end`; 0 when there is nothing below.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { usize::try_from(self.next() % end as u64).unwrap() }
    }
}

/// A line, and who it is.
#[derive(Clone, Debug)]
pub struct Line {
    /// No other line has it, whatever happens to this one.
    pub id: u64,
    /// Those it was copied from.
    pub ancestors: Vec<u64>,
    pub text: String,
}

impl Line {
    /// Its text, as far as formatters leave it alone.
    pub fn code(&self) -> String {
        self.text.chars().filter(|c| !c.is_whitespace()).collect()
    }
}

/// A file at some time.
#[derive(Clone, Debug)]
pub struct File {
    pub path: String,
    pub lines: Vec<Line>,
    pub has_crlf: bool,
}

impl File {
    pub fn text(&self) -> String {
        let end = if self.has_crlf { "\r\n" } else { "\n" };
        self.lines.iter().map(|line| format!("{}{end}", line.text)).collect()
    }
}

/// Makes histories.
pub struct Editor {
    pub dice: Dice,
    next_id: u64,
}

/// What editors do, in the words of the report.
pub const KINDS: [&str; 14] = [
    "insert",
    "insert copies",
    "delete",
    "delete one",
    "move",
    "copy",
    "edit",
    "indent",
    "break",
    "join",
    "crlf",
    "rename",
    "header",
    "swap",
];

impl Editor {
    pub fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed), next_id: 0 }
    }

    pub fn open(&mut self, path: &str, text: &str) -> File {
        let lines = text.lines().map(|text| self.line(text.to_owned(), Vec::new())).collect();
        File { path: path.to_owned(), lines, has_crlf: false }
    }

    fn line(&mut self, text: String, ancestors: Vec<u64>) -> Line {
        self.next_id += 1;
        Line { id: self.next_id, ancestors, text }
    }

    fn copy(&mut self, line: &Line) -> Line {
        let mut ancestors = line.ancestors.clone();
        ancestors.push(line.id);
        self.line(line.text.clone(), ancestors)
    }

    fn fresh(&mut self) -> Line {
        let word = self.dice.below(1_000_000);
        let text = match self.dice.below(4) {
            0 => format!("    let value_{word} = compute(input, {word});"),
            1 => format!("    // what {word} is about"),
            2 => format!("    call_{word}(first, second);"),
            _ => format!("    if state.{word} > limit {{"),
        };
        self.line(text, Vec::new())
    }

    /// A stretch of lines: where it begins, and how long it is.
    fn stretch(&mut self, file: &File, longest: usize) -> (usize, usize) {
        let from = self.dice.below(file.lines.len());
        (from, (1 + self.dice.below(longest)).min(file.lines.len() - from))
    }

    /// One edit; its kind.
    pub fn edit(&mut self, file: &mut File) -> &'static str {
        let kind = self.dice.below(KINDS.len());
        let at = self.dice.below(file.lines.len() + 1);
        match KINDS[kind] {
            "insert" => {
                let count = 1 + self.dice.below(6);
                let lines: Vec<Line> = (0..count).map(|_| self.fresh()).collect();
                file.lines.splice(at..at, lines);
            }
            "insert copies" => {
                // Lines as there are many: braces, blank lines, returns.
                let count = 1 + self.dice.below(4);
                for _ in 0..count {
                    let from = self.dice.below(file.lines.len());
                    let line = self.copy(&file.lines[from].clone());
                    file.lines.insert(at, line);
                }
            }
            "delete" => {
                let (from, count) = self.stretch(file, 8);
                delete(file, from, count);
            }
            "delete one" => {
                let (from, _) = self.stretch(file, 1);
                delete(file, from, 1);
            }
            "move" => {
                let (from, count) = self.stretch(file, 15);
                let block: Vec<Line> = file.lines.drain(from..from + count).collect();
                let to = self.dice.below(file.lines.len() + 1);
                file.lines.splice(to..to, block);
            }
            "copy" => {
                let (from, count) = self.stretch(file, 12);
                let block: Vec<Line> = file.lines[from..from + count].to_vec();
                let block: Vec<Line> = block.iter().map(|line| self.copy(line)).collect();
                file.lines.splice(at..at, block);
            }
            "edit" => {
                let (from, count) = self.stretch(file, 3);
                for at in from..from + count {
                    let word = self.dice.below(1000);
                    let text = format!("{} + edited_{word}", file.lines[at].text);
                    file.lines[at] = self.line(text, Vec::new());
                }
            }
            "indent" => {
                let (from, count) = self.stretch(file, 40);
                let is_deeper = self.dice.below(2) == 0;
                for line in &mut file.lines[from..from + count] {
                    if is_deeper {
                        line.text.insert(0, '\t');
                    } else {
                        line.text = line.text.trim_start().to_owned();
                    }
                }
            }
            "break" => {
                let (from, _) = self.stretch(file, 1);
                let text = file.lines[from].text.clone();
                let parts: Vec<String> = text.splitn(3, ", ").map(str::to_owned).collect();
                if parts.len() > 1 {
                    let lines: Vec<Line> = parts.into_iter().map(|text| self.line(text, Vec::new())).collect();
                    file.lines.splice(from..=from, lines);
                }
            }
            "join" => {
                let (from, count) = self.stretch(file, 3);
                if count > 1 {
                    let text: Vec<&str> = file.lines[from..from + count].iter().map(|line| line.text.trim()).collect();
                    let text = text.join(" ");
                    let mut line = self.line(text, Vec::new());
                    // Joined with nothing but blanks it is who it was.
                    if let Some(part) = file.lines[from..from + count].iter().find(|part| part.code() == line.code()) {
                        line = Line { text: line.text, ..part.clone() };
                    }
                    file.lines.splice(from..from + count, [line]);
                }
            }
            "crlf" => file.has_crlf = !file.has_crlf,
            "rename" => {
                let folder = ["src", "lib", "core", "src/inner"][self.dice.below(4)];
                let name = self.dice.below(1000);
                file.path = format!("{folder}/file_{name}.txt");
            }
            "header" => {
                let word = self.dice.below(1_000_000);
                let lines = (0..14).map(|at| self.line(format!("// licence {word}, line {at}"), Vec::new()));
                let lines: Vec<Line> = lines.collect();
                file.lines.splice(0..0, lines);
            }
            _ => {
                // Two neighbouring stretches change places, as functions do.
                let (from, count) = self.stretch(file, 20);
                let to = (from + count + 1 + self.dice.below(20)).min(file.lines.len());
                file.lines[from..to].rotate_left(count.min(to - from));
            }
        }
        if file.lines.is_empty() {
            let line = self.fresh();
            file.lines.push(line);
        }
        KINDS[kind]
    }
}

/// Deletes lines. Of equal lines next to each other nobody can say which one it was: the youngest
/// goes.
fn delete(file: &mut File, from: usize, count: usize) {
    for _ in 0..count {
        if from >= file.lines.len() {
            return;
        }
        let code = file.lines[from].code();
        let is_same = |at: &usize| file.lines[*at].code() == code;
        let first = (0..from).rev().take_while(is_same).last().unwrap_or(from);
        let last = (from + 1..file.lines.len()).take_while(is_same).last().unwrap_or(from);
        let youngest = (first..=last).max_by_key(|&at| file.lines[at].id).unwrap_or(from);
        file.lines.remove(youngest);
    }
}

/// All who are in a file, copies with those they are of.
pub fn everyone(file: &File) -> HashSet<u64> {
    file.lines.iter().map(|line| line.id).collect()
}
