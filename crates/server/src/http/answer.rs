//! From the head of a request to its answer (RFC 9110, RFC 9112).

use std::sync::Arc;

use httparse::{EMPTY_HEADER, Error, Request, Status};

use super::exchange::HEAD_BYTES_MAX;
use super::host::split_target;
use super::source::AnswerSource;

/// The page: it has no outside assets, and reads `/metrics` once a second.
const DASHBOARD: &str = include_str!("dashboard.html");
/// Only the page itself runs or is loaded, and it reads only from here.
const DASHBOARD_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
    script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
/// The text format of Prometheus, in its only version.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

const FOREIGN_HOST: &str = "the request is for a name that is not this server's: use an address, \
    or add the name to metrics-allowed-hosts";

/// Lines of a head that are looked at. Browsers send about fifteen.
const HEADERS_MAX: usize = 64;

/// An answer, ready to send.
#[derive(Debug)]
pub(super) struct Answer {
    head: Vec<u8>,
    /// Empty for HEAD.
    body: Arc<[u8]>,
}

impl Answer {
    /// The rest after so many bytes have been sent, or the first part of it.
    pub(super) fn rest(&self, sent: usize) -> &[u8] {
        match self.head.get(sent..) {
            Some(rest @ [_, ..]) => rest,
            _ => &self.body[sent - self.head.len()..],
        }
    }
}

/// The content of an answer, before it is known whether the body is wanted.
struct Content {
    status: &'static str,
    kind: &'static str,
    body: Arc<[u8]>,
}

impl Content {
    fn text(status: &'static str, text: impl AsRef<str>) -> Self {
        let body = format!("{}\n", text.as_ref()).into_bytes().into();
        Self { status, kind: TEXT, body }
    }
}

/// The answer to a head, when all of it has arrived or it cannot be valid.
pub(super) fn answer(head: &[u8], source: &mut AnswerSource<'_>) -> Option<Answer> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = Request::new(&mut headers);
    let content = match request.parse(head) {
        Ok(Status::Partial) if head.len() < HEAD_BYTES_MAX => return None,
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => {
            Content::text("431 Request Header Fields Too Large", "the request's head is too long")
        }
        Err(error) => Content::text("400 Bad Request", format!("this is not HTTP: {error}")),
        Ok(Status::Complete(_)) => {
            let (method, target) = (request.method.unwrap_or(""), request.path.unwrap_or(""));
            if !source.is_for_here(&request) {
                return Some(whole(&Content::text("403 Forbidden", FOREIGN_HOST)));
            }
            return Some(match method {
                "GET" => whole(&content(target, source)),
                "HEAD" => Answer { body: Arc::default(), ..whole(&content(target, source)) },
                _ => whole(&Content::text("405 Method Not Allowed", "only GET and HEAD")),
            });
        }
    };
    Some(whole(&content))
}

fn content(target: &str, source: &mut AnswerSource<'_>) -> Content {
    let path = path_of(target);
    match path {
        "/metrics" => Content { status: "200 OK", kind: METRICS, body: source.metrics() },
        "/healthz" => match source.health() {
            Ok(()) => match source.paused() {
                None => Content::text("200 OK", "ok"),
                Some(what) => Content::text("200 OK", format!("ok; CLIENT PAUSE holds {what}")),
            },
            Err(reason) => Content::text("503 Service Unavailable", reason.to_string()),
        },
        "/" => Content { status: "200 OK", kind: HTML, body: DASHBOARD.as_bytes().into() },
        _ => Content::text("404 Not Found", "there are /metrics, /healthz and /"),
    }
}

/// The path of a target in either form.
fn path_of(target: &str) -> &str {
    let (_, path) = split_target(target);
    match path.split(['?', '#']).next() {
        None | Some("") => "/",
        Some(path) => path,
    }
}

fn whole(content: &Content) -> Answer {
    let Content { status, kind, body } = content;
    let mut head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n",
        body.len()
    );
    if status.starts_with("405") {
        head.push_str("Allow: GET, HEAD\r\n");
    }
    if *kind == HTML {
        head.push_str(&format!("Content-Security-Policy: {DASHBOARD_POLICY}\r\n"));
    }
    head.push_str("\r\n");
    Answer { head: head.into_bytes(), body: Arc::clone(body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_found_in_both_forms() {
        for (target, path) in [
            ("/metrics", "/metrics"),
            ("/metrics?a=/b#c", "/metrics"),
            ("http://x/metrics", "/metrics"),
            ("HTTPS://user@[::1]:9121/healthz?x", "/healthz"),
            ("http://x:1", "/"),
            ("http://x?/metrics", "/"),
            ("http:/metrics", "http:/metrics"),
            ("*", "*"),
        ] {
            assert_eq!(path_of(target), path, "{target}");
        }
    }

    #[test]
    fn an_answer_is_sent_in_parts() {
        let answer = Answer { head: b"head".to_vec(), body: b"body".as_slice().into() };
        let (mut sent, mut all) = (0, Vec::new());
        while let [first, ..] = answer.rest(sent) {
            all.push(*first);
            sent += 1;
        }
        assert_eq!(all, b"headbody");
        let empty = Answer { head: b"head".to_vec(), body: Arc::default() };
        assert_eq!((empty.rest(3), empty.rest(4)), (&b"d"[..], &b""[..]));
    }
}
