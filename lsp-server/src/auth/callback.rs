//! The page the browser comes back to, with the code of a sign-in.
//!
//! It listens on the loopback of this machine, on a port the system gives or a fixed one, until
//! there is an answer: browsers ask for icons first, and people open the page twice. What is
//! not the answer of this very sign-in, by path, host and `state`, changes nothing, so that no
//! web page can drive it. Everything on the page that came from outside is escaped.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use crate::source::{SourceError, SourceErrorKind};

/// The path that codes come to.
const PATH: &str = "/callback";
/// The largest head of a request.
const MAX_HEAD: usize = 16 << 10;
/// Connections at the same time.
const MAX_SERVED: usize = 16;
/// A browser that has connected has this long to ask.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// How long a person may take.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// A listener for one sign-in.
#[derive(Debug)]
pub struct Callback {
    v4: TcpListener,
    /// Where `localhost` is that address alone.
    v6: Option<TcpListener>,
    port: u16,
}

impl Callback {
    /// Begins to listen; port 0 lets the system choose.
    pub async fn listen(port: u16) -> Result<Self, SourceError> {
        let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(|error| {
            let choice = if port == 0 { String::new() } else { format!(" {port}") };
            SourceError::input(format!("the port{choice} can't be listened on for the browser: {error}; try --paste"))
        })?;
        let port = v4.local_addr().map_or(port, |address| address.port());
        let v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.ok();
        Ok(Self { v4, v6, port })
    }

    /// Where the browser is to come back to.
    pub fn redirect(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the code that belongs to `state`.
    pub async fn code(&self, state: &str) -> Result<String, SourceError> {
        let wait = async {
            // Browsers connect ahead of time and say nothing; the answer may come beside that.
            let mut serving = FuturesUnordered::new();
            loop {
                tokio::select! {
                    stream = self.accept(), if serving.len() < MAX_SERVED => {
                        serving.push(tokio::time::timeout(HEAD_PATIENCE, self.serve(stream, state)));
                    }
                    Some(served) = serving.next() => {
                        if let Ok(Some(answer)) = served {
                            return answer;
                        }
                    }
                }
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| {
            Err(SourceError::input(format!("nobody signed in within {} minutes; begin again", PATIENCE.as_secs() / 60)))
        })
    }

    async fn accept(&self) -> TcpStream {
        loop {
            let accepted = match &self.v6 {
                Some(v6) => tokio::select! { it = self.v4.accept() => it, it = v6.accept() => it },
                None => self.v4.accept().await,
            };
            match accepted {
                Ok((stream, _)) => return stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Answers one request; the answer of the sign-in, if it was that.
    async fn serve(&self, mut stream: TcpStream, state: &str) -> Option<Result<String, SourceError>> {
        let head = read_head(&mut stream).await?;
        let (page, answer) = match self.judge(&head, state) {
            Judged::NotFound => (page(404, "Not found", "There is nothing here."), None),
            Judged::Refused(why) => (page(400, "Not signed in", why), None),
            Judged::Code(code) => {
                (page(200, "Signed in", "You are signed in. This page can be closed."), Some(Ok(code)))
            }
            Judged::Failed(why) => {
                let error = SourceError::new(SourceErrorKind::SignIn, "the sign-in page", why.clone());
                (page(200, "Not signed in", &why), Some(Err(error)))
            }
        };
        let _ = stream.write_all(page.as_bytes()).await;
        let _ = stream.shutdown().await;
        answer
    }

    fn judge(&self, head: &str, state: &str) -> Judged {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let header = |name: &str| {
            head.split("\r\n").skip(1).find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{}", self.port));
        if !header("host").is_some_and(|host| hosts.contains(&host)) {
            return Judged::Refused("This page was called by another name.");
        }
        // A person's browser goes here; a script of a page says where it is from.
        if header("origin").is_some() {
            return Judged::Refused("Pages can't sign in.");
        }
        let Ok(url) = Url::parse(&format!("http://127.0.0.1{target}")) else { return Judged::NotFound };
        if method != "GET" || url.path() != PATH || !target.starts_with('/') {
            return Judged::NotFound;
        }
        let parameter =
            |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        if !parameter("state").is_some_and(|came| is_same(&came, state)) {
            return Judged::Refused("This is not the answer to the sign-in that was begun. Begin again.");
        }
        if let Some(error) = parameter("error") {
            let words = parameter("error_description").unwrap_or(error);
            return Judged::Failed(words.chars().take(200).collect());
        }
        match parameter("code").filter(|code| !code.is_empty()) {
            Some(code) => Judged::Code(code),
            None => Judged::Refused("The answer holds no code. Begin again."),
        }
    }
}

enum Judged {
    NotFound,
    Refused(&'static str),
    Code(String),
    Failed(String),
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut buffer = [0; 2048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut buffer).await.ok()?;
        if count == 0 || head.len() + count > MAX_HEAD {
            return None;
        }
        head.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8(head).ok()
}

/// Compares without telling by the time it takes how much is equal.
fn is_same(came: &str, expected: &str) -> bool {
    came.len() == expected.len() && came.bytes().zip(expected.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn page(status: u16, title: &str, text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|character| match character {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '"' => "&quot;".to_owned(),
            '\'' => "&#39;".to_owned(),
            character if character.is_control() => " ".to_owned(),
            character => character.to_string(),
        })
        .collect();
    let body =
        format!("<!doctype html><meta charset=\"utf-8\"><title>perflens</title><h1>{title}</h1><p>{escaped}</p>\n");
    format!(
        "HTTP/1.1 {status} perflens\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         content-security-policy: default-src 'none'\r\nreferrer-policy: no-referrer\r\ncache-control: no-store\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        stream.write_all(request.replace("PORT", &port.to_string()).as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    fn run(requests: &[&str]) -> (Vec<String>, Result<String, SourceError>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let callback = Callback::listen(0).await.unwrap();
            let port = callback.port;
            let asking = async {
                let mut answers = Vec::new();
                for request in requests {
                    answers.push(ask(port, request).await);
                }
                answers
            };
            let (code, answers) = tokio::join!(callback.code("right"), asking);
            (answers, code)
        })
    }

    #[test]
    fn a_browser_for_which_localhost_is_ipv6_alone_arrives() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let callback = Callback::listen(0).await.unwrap();
            if callback.v6.is_none() {
                // Past the harness, which keeps what tests print.
                let _ = std::io::Write::write_all(&mut std::io::stderr(), b"not run: this machine has no ::1\n");
                return;
            }
            assert!(callback.redirect().starts_with("http://127.0.0.1:"), "it names the one that is always bound");
            let port = callback.port;
            let asking = async {
                let mut stream = TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.unwrap();
                let request = GOOD.replace("127.0.0.1:PORT", &format!("[::1]:{port}"));
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
            };
            let (code, ()) = tokio::join!(callback.code("right"), asking);
            assert_eq!(code.unwrap(), "c 1");
        });
    }

    /// As browsers do that expect to ask for more.
    #[test]
    fn a_connection_that_says_nothing_holds_nobody_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let callback = Callback::listen(0).await.unwrap();
            let port = callback.port;
            let silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            let both = async { tokio::join!(callback.code("right"), ask(port, GOOD)) };
            // A silent connection is given up after ten seconds.
            let (code, page) = tokio::time::timeout(HEAD_PATIENCE / 2, both).await.expect("it does not wait for that");
            assert_eq!(code.unwrap(), "c 1");
            assert!(page.contains("You are signed in"), "{page}");
            drop(silent);
        });
    }

    const GOOD: &str = "GET /callback?code=c%201&state=right HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n";

    #[test]
    fn only_the_answer_of_this_sign_in_ends_it() {
        let others = [
            "GET /favicon.ico HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
            "GET /callback?code=x&state=wrong HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
            "GET /callback?code=x HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
            "GET /callback?error=access_denied&state=wrong HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
            "GET /callback?code=x&state=right HTTP/1.1\r\nHost: evil.example:PORT\r\n\r\n",
            "GET /callback?code=x&state=right HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nOrigin: https://evil.example\r\n\r\n",
            "POST /callback?code=x&state=right HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
            "GET /callback?state=right HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
        ];
        let (answers, code) = run(&[&others[..], &[GOOD]].concat());
        assert_eq!(code.unwrap(), "c 1");
        let (last, refused) = answers.split_last().unwrap();
        assert!(last.contains("200 perflens") && last.contains("You are signed in"), "{last}");
        for (answer, request) in refused.iter().zip(others) {
            assert!(answer.contains(" 404 ") || answer.contains(" 400 "), "{request}: {answer}");
        }
    }

    #[test]
    fn a_refusal_is_told_and_escaped() {
        let request = "GET /callback?error=access_denied&error_description=%3Cscript%3Ealert(1)%3C/script%3E&state=right \
                       HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n";
        let (answers, code) = run(&[request]);
        assert!(answers[0].contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !answers[0].contains("<script>"));
        let sentence = code.unwrap_err().to_string();
        assert!(sentence.starts_with("the sign-in page wants you to sign in: <script>"), "{sentence}");
    }
}
