//! Jedis, Lettuce and Redisson: Maven downloads the jars, javac compiles the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clients_test::{KINDS, Program, Tool, install_step, prepare, sources};

const TOOLS: [Tool; 3] = [
    Tool { version: &["java", "-version"], at_least: (17, 0) },
    Tool { version: &["javac", "-version"], at_least: (17, 0) },
    Tool { version: &["mvn", "--version"], at_least: (3, 6) },
];

fn run(library: &str, without: &[&str]) {
    let java = sources("java", "java");
    let files: Vec<_> = sources("java", "xml").into_iter().chain(java.iter().cloned()).collect();
    let install = |folder: &Path| install(folder, &files[0], &java);
    if let Some(folder) = prepare("java", &TOOLS, &files, install) {
        let mut command: Vec<String> = vec!["java".into(), "-XX:TieredStopAtLevel=1".into()];
        command.extend(["-cp".into(), class_path(&folder), "Main".into()]);
        Program { command }.run_library(library, &KINDS, without);
    }
}

fn install(folder: &Path, pom: &Path, java: &[PathBuf]) {
    let jars = folder.join("jars");
    // Jars of another version would stay on the class path.
    let _ = fs::remove_dir_all(&jars);
    install_step(
        Command::new("mvn")
            .args(["--quiet", "--batch-mode", "dependency:copy-dependencies", "--file"])
            .arg(pom)
            .arg(format!("-Dmaven.repo.local={}", folder.join("repository").display()))
            .arg(format!("-DoutputDirectory={}", jars.display())),
    );
    install_step(
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
    run("jedis", &[]);
}

#[test]
fn lettuce() {
    run("lettuce", &[]);
}

#[test]
fn redisson() {
    // Its own transactions take locks; it has no WATCH.
    run("redisson", &["transaction: a watched key"]);
}
