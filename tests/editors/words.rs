//! Groups the words of a text by length. Märchen, →, 🔥: characters of every width in UTF-8.
use std::collections::HashMap;

fn main() {
    let text = std::fs::read_to_string("words.txt").unwrap_or_default();
    let groups = group(&text);
    println!("{} lengths", groups.len());
}

/// Words by their length.
fn group(text: &str) -> HashMap<usize, Vec<String>> {
    let mut groups: HashMap<usize, Vec<String>> = HashMap::new();
    for word in text.split_whitespace() {
        let length = measure(word); // 🔥 every letter
        groups.entry(length).or_default().push(word.to_string());
    }
    groups
}

/// Letters only: "naïve" has five.
fn measure(word: &str) -> usize {
    word.chars().filter(|c| c.is_alphabetic()).count()
}
