//! Jedis, Lettuce and Redisson: Maven gathers the jars, javac compiles the program against them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clients_test::{KINDS, Part, Program, Tool, prepare, run_step, sources};

const TOOLS: [Tool; 3] = [
    Tool { version: &["java", "-version"], at_least: (17, 0) },
    Tool { version: &["javac", "-version"], at_least: (17, 0) },
    Tool { version: &["mvn", "--version"], at_least: (3, 6) },
];

fn program() -> Option<Program> {
    let java = sources("java", "java");
    let files: Vec<_> = sources("java", "xml").into_iter().chain(java.iter().cloned()).collect();
    let folder = prepare("java", &TOOLS, &files, |folder| install(folder, &files[0], &java))?;
    let mut words: Vec<String> = vec!["java".into(), "-XX:TieredStopAtLevel=1".into()];
    words.extend(["-cp".into(), class_path(&folder), "Main".into()]);
    Some(Program { words })
}

fn run(part: Part) {
    if let Some(program) = program() {
        program.run(part);
    }
}

fn run_client(library: &str, without: &[&str]) {
    if let Some(program) = program() {
        program.run_client(library, &KINDS, without);
    }
}

fn install(folder: &Path, pom: &Path, java: &[PathBuf]) {
    let jars = folder.join("jars");
    // Jars of another version would stay on the class path.
    let _ = fs::remove_dir_all(&jars);
    run_step(
        Command::new("mvn")
            .args(["--quiet", "--batch-mode", "dependency:copy-dependencies", "--file"])
            .arg(pom)
            .arg(format!("-Dmaven.repo.local={}", folder.join("repository").display()))
            .arg(format!("-DoutputDirectory={}", jars.display())),
    );
    run_step(
        Command::new("javac")
            .args(["-nowarn", "-encoding", "UTF-8", "-cp", &class_path(folder), "-d"])
            .arg(folder.join("classes"))
            .args(java),
    );
}

fn class_path(folder: &Path) -> String {
    format!("{}:{}", folder.join("jars/*").display(), folder.join("classes").display())
}

#[test]
fn jedis() {
    run_client("jedis", &[]);
}

#[test]
fn lettuce() {
    run_client("lettuce", &[]);
}

#[test]
fn redisson() {
    // Its own transactions take locks; it has no WATCH.
    run_client("redisson", &["transaction: a watched key"]);
}

#[test]
fn resp2() {
    run(Part::Resp2);
}

#[test]
fn resp3() {
    run(Part::Resp3);
}

#[test]
fn auth() {
    run(Part::Auth);
}
