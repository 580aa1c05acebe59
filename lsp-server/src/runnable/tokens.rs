//! Words, texts and signs of a program, with where they are; comments are none.
//!
//! One reader for all languages, since what they differ in here is small: how comments and texts begin
//! and end. Text that is being typed may end anywhere; a text that is not closed ends with its line, where
//! the language has it so, and the rest is read as if nothing had happened.

/// Whose comments and texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    C,
    Go,
    JavaScript,
    Python,
    Rust,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, a keyword, a number.
    Word,
    /// The content of a text in quotes.
    Text,
    /// A single character.
    Sign,
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    /// From 0.
    pub(super) line: u32,
    /// Bytes from the beginning of the line.
    pub(super) column: u32,
    /// How many brackets are open around it; those of a pair have the same.
    pub(super) depth: u32,
    /// Of an opening bracket, how many tokens later its pair closes; 0 where none does.
    closes_after: usize,
}

impl Token<'_> {
    pub(super) fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }
}

/// The tokens of a text.
pub(super) fn tokens(text: &str, dialect: Dialect) -> Vec<Token<'_>> {
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        dialect,
        at: 0,
        line: 0,
        line_start: 0,
        depth: 0,
        open: Vec::new(),
        tokens: Vec::new(),
    };
    reader.run();
    reader.tokens
}

/// The token that closes the bracket at an index; the last one where none does.
pub(super) fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let last = tokens.len().saturating_sub(1);
    match tokens.get(open).map_or(0, |bracket| bracket.closes_after) {
        0 => last,
        after => (open + after).min(last),
    }
}

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    dialect: Dialect,
    at: usize,
    line: u32,
    line_start: usize,
    depth: u32,
    /// Positions of the brackets that are open.
    open: Vec<usize>,
    tokens: Vec<Token<'t>>,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn starts_with(&self, what: &str) -> bool {
        self.bytes[self.at..].starts_with(what.as_bytes())
    }

    fn run(&mut self) {
        while self.at < self.bytes.len() {
            let byte = self.bytes[self.at];
            match byte {
                b'\n' => self.newline(),
                _ if byte.is_ascii_whitespace() => self.at += 1,
                _ if self.comment() => {}
                b'"' | b'\'' | b'`' => self.quoted(byte),
                b'/' if self.dialect == Dialect::JavaScript && self.is_before_value() => self.regular_expression(),
                _ if is_word(byte) => self.word(),
                _ => self.sign(),
            }
        }
    }

    fn newline(&mut self) {
        self.at += 1;
        self.line += 1;
        self.line_start = self.at;
    }

    /// Goes on to a position, counting lines.
    fn skip_to(&mut self, end: usize) {
        while self.at < end.min(self.bytes.len()) {
            if self.bytes[self.at] == b'\n' {
                self.newline();
            } else {
                self.at += 1;
            }
        }
    }

    fn push(&mut self, kind: Kind, begin: usize, end: usize, line: u32, column: usize) {
        let column = u32::try_from(column).unwrap_or(u32::MAX);
        // Ends of tokens are ASCII, or the end of a word, which takes whole characters.
        let text = self.text.get(begin..end.max(begin)).unwrap_or_default();
        self.tokens.push(Token { kind, text, line, column, depth: self.depth, closes_after: 0 });
    }

    fn end_of_line(&self) -> usize {
        self.bytes[self.at..].iter().position(|&byte| byte == b'\n').map_or(self.bytes.len(), |after| self.at + after)
    }

    /// Skips a comment, if one begins here.
    fn comment(&mut self) -> bool {
        let is_line = match self.dialect {
            Dialect::Python => self.starts_with("#"),
            // Directives are none of the program's own words.
            Dialect::C => {
                self.starts_with("//") || self.starts_with("#") && self.text[self.line_start..self.at].trim().is_empty()
            }
            _ => self.starts_with("//"),
        };
        if is_line {
            loop {
                self.at = self.end_of_line();
                let is_continued = self.dialect == Dialect::C && self.bytes[..self.at].ends_with(b"\\");
                if !is_continued || self.at >= self.bytes.len() {
                    return true;
                }
                self.newline();
            }
        }
        if self.dialect == Dialect::Python || !self.starts_with("/*") {
            return false;
        }
        let mut open = 0_usize;
        let mut end = self.at;
        while end < self.bytes.len() {
            let pair = &self.bytes[end..self.bytes.len().min(end + 2)];
            if pair == b"/*" && (open == 0 || self.dialect == Dialect::Rust) {
                open += 1;
                end += 2;
            } else if pair == b"*/" {
                open -= 1;
                end += 2;
                if open == 0 {
                    break;
                }
            } else {
                end += 1;
            }
        }
        self.skip_to(end);
        true
    }

    fn quoted(&mut self, quote: u8) {
        let (begin, line, column) = (self.at, self.line, self.at - self.line_start);
        if quote == b'\'' && self.dialect == Dialect::Rust {
            // 'a' and '\n' are characters, 'a is a lifetime.
            let next = self.text[self.at + 1..].chars().next().map_or(1, char::len_utf8);
            if self.peek(1) != b'\\' && self.peek(1 + next) != b'\'' {
                self.at += 1;
                return;
            }
        }
        let before = self.tokens.last().filter(|token| token.kind == Kind::Word && token.line == line);
        let prefix = before.filter(|token| token.column as usize + token.text.len() == column).map(|token| token.text);
        if quote == b'"' && self.dialect == Dialect::Rust && matches!(prefix, Some("r" | "br" | "cr")) {
            return self.raw(0);
        }
        if self.dialect == Dialect::Python && self.bytes[begin..].starts_with(&[quote; 3]) {
            let end = self.find_end(begin + 3, &[quote; 3], true);
            self.skip_to(end + 3);
            return self.push(Kind::Text, begin + 3, end, line, column);
        }
        if quote == b'`' {
            let end = if self.dialect == Dialect::JavaScript {
                template_end(self.bytes, begin + 1)
            } else {
                self.find_end(begin + 1, b"`", false)
            };
            self.skip_to(end + 1);
            return self.push(Kind::Text, begin + 1, end, line, column);
        }
        if self.dialect == Dialect::C && quote == b'"' && prefix == Some("R") {
            let open = self.bytes[begin..].iter().position(|&byte| byte == b'(').map_or(begin, |after| begin + after);
            let delimiter = [b")", &self.bytes[(begin + 1).min(open)..open], b"\""].concat();
            let end = self.find_end(open + 1, &delimiter, false);
            self.skip_to(end + delimiter.len());
            return self.push(Kind::Text, open + 1, end, line, column);
        }
        let is_long = self.dialect == Dialect::Rust && quote == b'"';
        let mut end = begin + 1;
        while end < self.bytes.len() && self.bytes[end] != quote && (is_long || self.bytes[end] != b'\n') {
            end += if self.bytes[end] == b'\\' { 2 } else { 1 };
        }
        let end = end.min(self.bytes.len());
        let is_closed = self.bytes.get(end) == Some(&quote);
        self.skip_to(end + usize::from(is_closed));
        self.push(Kind::Text, begin + 1, end, line, column);
    }

    /// A text of Rust that ends with a quote and as many `#` as it begins with.
    fn raw(&mut self, hashes: usize) {
        let (begin, line, column) = (self.at + hashes + 1, self.line, self.at - self.line_start);
        let end_mark = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
        let end = self.find_end(begin, &end_mark, false);
        self.skip_to(end + end_mark.len());
        self.push(Kind::Text, begin, end, line, column);
    }

    /// Where a mark is, or the end.
    fn find_end(&self, from: usize, mark: &[u8], escapes: bool) -> usize {
        let mut at = from;
        while at < self.bytes.len() && !self.bytes[at..].starts_with(mark) {
            at += if escapes && self.bytes[at] == b'\\' { 2 } else { 1 };
        }
        at.min(self.bytes.len())
    }

    /// Whether what comes next is a value, so that a slash begins a regular expression.
    fn is_before_value(&self) -> bool {
        match self.tokens.last() {
            None => true,
            Some(token) if token.kind == Kind::Sign => !matches!(token.text, ")" | "]" | "}"),
            Some(token) if token.kind == Kind::Word => {
                matches!(token.text, "return" | "typeof" | "case" | "in" | "of" | "await" | "yield" | "throw" | "void")
            }
            Some(_) => false,
        }
    }

    fn regular_expression(&mut self) {
        let (begin, line, column) = (self.at, self.line, self.at - self.line_start);
        let mut end = begin + 1;
        let mut is_in_class = false;
        while end < self.bytes.len() && self.bytes[end] != b'\n' {
            match self.bytes[end] {
                b'\\' => end += 1,
                b'[' => is_in_class = true,
                b']' => is_in_class = false,
                b'/' if !is_in_class => break,
                _ => {}
            }
            end += 1;
        }
        let end = end.min(self.bytes.len());
        self.skip_to(end + usize::from(self.bytes.get(end) == Some(&b'/')));
        self.push(Kind::Text, begin + 1, end, line, column);
    }

    fn word(&mut self) {
        let begin = self.at;
        while self.at < self.bytes.len() && is_word(self.bytes[self.at]) {
            self.at += 1;
        }
        let word = &self.text[begin..self.at];
        if self.dialect == Dialect::Rust && matches!(word, "r" | "br" | "cr") && self.peek(0) == b'#' {
            let hashes = self.bytes[self.at..].iter().take_while(|&&byte| byte == b'#').count();
            if self.peek(hashes) == b'"' {
                return self.raw(hashes);
            }
            // r#type is the word type.
            self.at += 1;
            return;
        }
        self.push(Kind::Word, begin, self.at, self.line, begin - self.line_start);
    }

    fn sign(&mut self) {
        let begin = self.at;
        self.at += 1;
        let byte = self.bytes[begin];
        if matches!(byte, b')' | b']' | b'}') {
            self.depth = self.depth.saturating_sub(1);
            if let Some(open) = self.open.pop() {
                self.tokens[open].closes_after = self.tokens.len() - open;
            }
        }
        self.push(Kind::Sign, begin, self.at, self.line, begin - self.line_start);
        if matches!(byte, b'(' | b'[' | b'{') {
            self.depth += 1;
            self.open.push(self.tokens.len() - 1);
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Where a template of JavaScript ends whose inside begins at a position. Without recursion: a text may be
/// nested as deep as it is long.
fn template_end(bytes: &[u8], from: usize) -> usize {
    // For each template that is open, how many braces are open in the expression that we are in.
    let mut open: Vec<Option<usize>> = vec![None];
    let mut at = from;
    while at < bytes.len() {
        match (open.last_mut(), bytes[at]) {
            (_, b'\\') => at += 1,
            (Some(None), b'`') => {
                open.pop();
                if open.is_empty() {
                    return at;
                }
            }
            (Some(braces @ None), b'$') if bytes.get(at + 1) == Some(&b'{') => {
                *braces = Some(0);
                at += 1;
            }
            (Some(Some(_)), b'`') => open.push(None),
            (Some(Some(braces)), b'{') => *braces += 1,
            (Some(braces @ Some(0)), b'}') => *braces = None,
            (Some(Some(braces)), b'}') => *braces -= 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, dialect: Dialect) -> String {
        let word = |token: &Token<'_>| match token.kind {
            Kind::Text => format!("<{}>", token.text),
            _ => token.text.to_owned(),
        };
        tokens(text, dialect).iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_texts_are_those_of_the_language() {
        use Dialect::{C, Go, JavaScript, Python, Rust};
        for (dialect, text, want) in [
            (Rust, "a /* b /* c */ d */ e // f\ng", "a e g"),
            (
                Rust,
                r###"r"a\" b r#"c"d"# r#fn 'x' '\'' &'a 'é' "e\"f""###,
                "r <a\\> b <c\"d> fn <x> <\\'> & a <é> <e\\\"f>",
            ),
            (Rust, "\"over\nlines\" x", "<over\nlines> x"),
            (Go, "a /* b /* c */ d", "a d"),
            (Go, "`a\\` b 'c' \"open\nd", "<a\\> b <c> <open> d"),
            (Python, "a # b\n'''c\n\"d\"''' r'e\\'f' # g", "a <c\n\"d\"> r <e\\'f>"),
            (JavaScript, "a / b; c = /[/]\"/g; `x${ {y: `z`} }`; d", "a / b ; c = <[/]\"> g ; <x${ {y: `z`} }> ; d"),
            (C, "#define X \\\n  \"\na R\"x(b)\")x\" 'c' // d \\\n e\nf", "a R <b)\"> <c> f"),
        ] {
            assert_eq!(words(text, dialect), want, "{text}");
        }
    }

    #[test]
    fn pairs_have_the_same_depth_and_lines_are_counted() {
        let all = tokens("a(\n{b}\n)\nc", Dialect::Rust);
        let places: Vec<(&str, u32, u32)> = all.iter().map(|token| (token.text, token.line, token.depth)).collect();
        let want = [("a", 0, 0), ("(", 0, 0), ("{", 1, 1), ("b", 1, 2), ("}", 1, 1), (")", 2, 0), ("c", 3, 0)];
        assert_eq!(places, want);
        assert_eq!((closing(&all, 1), closing(&all, 2)), (5, 4));
    }

    #[test]
    fn any_text_is_read_to_its_end() {
        let pieces =
            ["\"", "'", "`", "\\", "/*", "*/", "//", "r#", "${", "}", "{", "(", ")", "é", "\n", "#", "R\"(", "'''"];
        let mut state = 1_u32;
        for _ in 0..4000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                text.push_str(pieces[(state >> 16) as usize % pieces.len()]);
            }
            for dialect in [Dialect::C, Dialect::Go, Dialect::JavaScript, Dialect::Python, Dialect::Rust] {
                let all = tokens(&text, dialect);
                assert!(all.iter().all(|token| (token.line as usize) <= text.matches('\n').count()), "{text:?}");
                if !all.is_empty() {
                    closing(&all, 0);
                }
            }
        }
    }
}
