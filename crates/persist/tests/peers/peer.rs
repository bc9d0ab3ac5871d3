//! Runs the server of a peer in a folder of its own, and sends requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Text(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Null,
    Array(Vec<Reply>),
}

pub struct Peer {
    child: Child,
    stream: BufReader<TcpStream>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Peer {
    /// Starts a server that loads the file of a folder, and waits until it is ready.
    pub fn start(program: &Path, folder: &Path) -> Self {
        Self::start_with(program, folder, &[])
    }

    /// The same with more arguments.
    pub fn start_with(program: &Path, folder: &Path, args: &[&str]) -> Self {
        // Retried, because another process may take the port before the server does.
        for _ in 0..10 {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            drop(listener);
            let mut command = Command::new(program);
            command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
            command.args(["--enable-debug-command", "yes", "--dir"]).arg(folder);
            command.args(args);
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let mut log = BufReader::new(child.stdout.take().unwrap());
            let mut said = String::new();
            while log.read_line(&mut said).unwrap() > 0 {
                if said.contains("Ready to accept connections") {
                    // The pipe must be drained, or the server blocks.
                    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
                    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
                    return Self { child, stream: BufReader::new(stream) };
                }
            }
            let _ = child.wait();
            assert!(said.contains("ddress already in use"), "{said}");
        }
        panic!("no port is free");
    }

    /// Kills it, as a crash would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a request and reads the reply.
    pub fn ask(&mut self, request: &[&[u8]]) -> Reply {
        let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
        for word in request {
            bytes.extend(format!("${}\r\n", word.len()).into_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&bytes).unwrap();
        self.reply()
    }

    fn reply(&mut self) -> Reply {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let text = line.get(1..).unwrap_or_default().trim_end();
        let number = || text.parse::<i64>().unwrap();
        match line.as_bytes().first() {
            Some(b':') => Reply::Integer(number()),
            Some(b'+') => Reply::Text(text.as_bytes().to_vec()),
            Some(b'-') => Reply::Error(text.as_bytes().to_vec()),
            Some(b'$' | b'*') if number() < 0 => Reply::Null,
            Some(b'$') => {
                let mut bytes = vec![0; number() as usize + 2];
                self.stream.read_exact(&mut bytes).unwrap();
                bytes.truncate(bytes.len() - 2);
                Reply::Text(bytes)
            }
            Some(b'*') => Reply::Array((0..number()).map(|_| self.reply()).collect()),
            _ => panic!("{line:?}"),
        }
    }
}
