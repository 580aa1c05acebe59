//! A browser for tests: opens an address, follows where it leads, and looks for an icon and
//! opens the last page twice on the way, as browsers do. Knows plain HTTP on the loopback only.

use std::io::{Read, Write};
use std::net::TcpStream;

fn main() {
    let Some(mut url) = std::env::args().nth(1) else { return };
    for _ in 0..5 {
        let Some((host, path)) =
            url.strip_prefix("http://").map(|rest| rest.split_at(rest.find('/').unwrap_or(rest.len())))
        else {
            return;
        };
        let (host, path) = (host.to_owned(), path.to_owned());
        let _ = get(&host, "/favicon.ico");
        let Some(answer) = get(&host, &path) else { return };
        let location = answer.lines().find_map(|line| line.strip_prefix("location: ").map(str::to_owned));
        let Some(next) = location else {
            let _ = get(&host, &path);
            return;
        };
        url = next;
    }
}

fn get(host: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(host).ok()?;
    let path = if path.is_empty() { "/" } else { path };
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
