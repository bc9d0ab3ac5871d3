//! Jedis: Maven gathers the jars, javac compiles the program against them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clients_test::{Part, Program, Tool, prepare, run_step, sources};

const TOOLS: [Tool; 3] = [
    Tool { version: &["java", "-version"], at_least: (17, 0) },
    Tool { version: &["javac", "-version"], at_least: (17, 0) },
    Tool { version: &["mvn", "--version"], at_least: (3, 6) },
];

fn run(part: Part) {
    let java = sources("java", "java");
    let files: Vec<_> = sources("java", "xml").into_iter().chain(java.iter().cloned()).collect();
    let Some(folder) = prepare("java", &TOOLS, &files, |folder| install(folder, &files[0], &java))
    else {
        return;
    };
    let mut words: Vec<String> = vec!["java".into(), "-XX:TieredStopAtLevel=1".into()];
    words.extend(["-cp".into(), class_path(&folder), "Main".into()]);
    Program { words }.run(part);
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
