//! `weft bench` as a load generator: the options of redis-benchmark and memtier_benchmark, its
//! output, and its end after an error.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::Value as Json;
use test_support::{WAIT_MAX, eventually, output_of, send_signal, weft};

use crate::Server;
use crate::undisturbed::undisturbed;

/// A bench of this server with the words of a line.
fn bench(server: &Server, line: &str) -> Command {
    let mut command = weft();
    command.args(["bench", "-p", &server.port.to_string()]).args(line.split_whitespace());
    command
}

/// The output of a bench that ends without an error.
#[track_caller]
fn shown(server: &Server, line: &str) -> String {
    let output = output_of(&mut bench(server, line));
    let (out, errors) = texts(&output);
    assert!(output.status.success(), "{line}: {errors}");
    out
}

/// The object of `--json`.
#[track_caller]
fn json(server: &Server, line: &str) -> Json {
    serde_json::from_str(&shown(server, &format!("--json --warm-up 0 {line}"))).unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_options_of_redis_benchmark_keep_their_meaning() {
    let server = Server::start(&["--io-threads", "1"]);
    let line = "-h 127.0.0.1 -t SET,get,ping_mbulk -n 600 -c 3 -P 2 -d 7 -r 50 --threads 2 -3 \
                --dbnum 5 --seed 9 -e -q";
    let out = shown(&server, line);
    let lines: Vec<&str> = out.lines().collect();
    for (line, name) in lines.iter().zip(["set", "get", "ping"]) {
        assert!(line.starts_with(&format!("{name}: ")), "{out}");
        assert!(line.contains(" requests per second, p50="), "{out}");
    }
    assert_eq!(lines.len(), 3);
    let mut client = server.client();
    client.ok("SELECT 5");
    assert_eq!(client.ask("DBSIZE").int(), 50);
    assert_eq!(client.ask("STRLEN key:000000000007").int(), 7);
    // A command with numbers of the range, and the last argument from a pipe.
    let out = shown(&server, "-n 2000 -r 40 --warm-up 0 -q sadd numbers __rand_int__");
    assert!(out.starts_with("sadd numbers __rand_int__: "), "{out}");
    let mut client = server.client();
    assert_eq!(client.ask("SCARD numbers").int(), 40);
    assert_eq!(client.ask("SISMEMBER numbers 000000000039").int(), 1);
    let path = server.path("value");
    fs::write(&path, "from a file").unwrap();
    let mut command = bench(&server, "-x -n 10 -q set given");
    let child = command.stdin(fs::File::open(path).unwrap()).stdout(Stdio::piped()).spawn();
    assert!(child.unwrap().wait_with_output().unwrap().status.success());
    assert_eq!(client.ask("GET given").text(), "from a file");
}

#[test]
fn exactly_the_number_of_requests_is_sent() {
    let server = Server::start(&["--io-threads", "1"]);
    let mut client = server.client();
    for options in ["", "-P 16 -c 7 --threads 3", "-c 50", "-k 0 -c 20", "--rps 5000", "-P 2000"] {
        client.ok("SET counter 0");
        let figures: Json = serde_json::from_str(&shown(
            &server,
            &format!("--json -n 1001 {options} incr counter"),
        ))
        .unwrap();
        assert_eq!(client.ask("GET counter").text(), "1001", "{options}");
        assert_eq!(figures["requests"], 1001, "{options}");
    }
    client.ok("FLUSHALL");
    shown(&server, "-q -n allkeys -r 77 -P 10 --threads 3 --key-pattern P:P -t set");
    assert_eq!(client.ask("DBSIZE").int(), 77);
}

#[test]
fn the_name_of_a_command_does_not_drive_the_terminal() {
    let server = Server::start(&["--io-threads", "1"]);
    for form in ["-q", "--csv", "--json", "--hide-histogram"] {
        let mut command = bench(&server, &format!("-n 10 {form}"));
        let (out, errors) = texts(&output_of(command.args(["get", "\u{1b}]0;x\u{7}\u{9b}2J"])));
        assert!(out.contains("get ") && out.contains("]0;x"), "{out:?} {errors}");
        let drives = |letter: char| letter.is_control() && letter != '\n';
        assert!(!out.contains(drives), "{form}: {out:?}");
    }
}

#[test]
fn a_rate_that_is_not_reached_is_said_in_words() {
    let server = Server::start(&["--io-threads", "1"]);
    let line = "-t ping --duration 0.3 --rps 4000000000";
    let out = shown(&server, &format!("{line} --hide-histogram"));
    for words in [" of the 4,000,000,000 requests/s that were due", " were due and never sent"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let out = shown(&server, &format!("{line} -q"));
    assert!(out.contains("% OF THE RATE"), "{out}");
    assert!(json(&server, line)["never_sent"].as_u64() > Some(0));
    undisturbed(|| {
        let out = shown(&server, "-t ping -n 100 --rps 1000 -q");
        assert!(!out.contains("RATE"), "not in time: {out}");
    });
}

#[test]
fn the_options_of_memtier_keep_their_meaning() {
    let server = Server::start(&["--io-threads", "1"]);
    let mut client = server.client();
    // A ratio begins with writes: all of these are writes.
    let all = "--ratio 1:0 --key-pattern P:P --key-minimum 10 --key-maximum 109 --key-prefix m- \
               --data-size-range 5-9 --threads 2 -c 4 -n 100 --distinct-client-seed";
    let figures = json(&server, all);
    assert_eq!((&figures["workload"], &figures["ratio"]), (&"mixed".into(), &"1:0".into()));
    assert_eq!(client.ask("DBSIZE").int(), 100);
    let length = client.ask("STRLEN m-00000000000010").int();
    assert!((5..=9).contains(&length), "{length}");
    // And these are reads of existing keys.
    let reads = all.replace("1:0", "0:1").replace("-n 100", "-n 300");
    let figures = json(&server, &reads);
    assert_eq!(figures["nulls_per_reply"], 0.0, "{figures}");
    client.ok("FLUSHALL");
    let mut command = bench(&server, "--json --warm-up 0 -n 900 -r 30 --data-size-list 3:1,4:1");
    command.args(["--command", "SET __key__ __data__", "--command-key-pattern", "S"]);
    command.args(["--command", "RPUSH list 'a b'", "--command-ratio", "2"]);
    let (out, errors) = texts(&output_of(&mut command));
    let figures: Json = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{errors}"));
    assert_eq!(figures["workload"], "SET __key__ __data__; RPUSH list a b");
    let pushed = client.ask("LLEN list").int();
    assert!((500..700).contains(&pushed), "{pushed}");
    assert_eq!(client.ask("DBSIZE").int(), 31);
    let time = json(&server, "--test-time 0.3 -t get --hide-histogram");
    assert!(time["seconds"].as_f64().unwrap() >= 0.3, "{time}");
}

#[test]
fn runs_are_summed_up_and_written_in_every_form() {
    let server = Server::start(&["--io-threads", "1"]);
    let [data, page] = ["out.json", "out.html"].map(|name| server.path(name));
    let files = format!("--json-out-file {} --html {}", data.display(), page.display());
    let out = shown(&server, &format!("-t set,get -n 3000 -r 10 --run-count 3 {files}"));
    for words in ["run 3: get: ", "mean of 3 runs", "requests/s", "p99 us", "server CPU us"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let all: Json = serde_json::from_str(&fs::read_to_string(data).unwrap()).unwrap();
    assert_eq!((&all[0]["workload"], &all[1]["workload"]), (&"set".into(), &"get".into()));
    for workload in all.as_array().unwrap() {
        assert_eq!(workload["runs"].as_array().unwrap().len(), 3);
        let mean = &workload["means"]["requests_per_second"];
        let [mean, low, high] = ["mean", "low_95", "high_95"].map(|at| mean[at].as_f64().unwrap());
        let runs = workload["runs"].as_array().unwrap().iter();
        let sum: f64 = runs.map(|run| run["requests_per_second"].as_f64().unwrap()).sum();
        assert!((mean - sum / 3.0).abs() < 1.0 && low <= mean && mean <= high, "{workload}");
    }
    let page = fs::read_to_string(page).unwrap();
    for words in ["<svg", "Distribution of latencies", "get: 50 clients"] {
        assert!(page.contains(words), "{words}");
    }
    let out = shown(&server, "--csv -t ping -n 3000 --run-count 2");
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split(',').collect()).collect();
    let heading = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                   \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\",";
    assert!(out.starts_with(heading), "{out}");
    let ends = lines[2].last_chunk();
    assert_eq!((lines.len(), lines[1][0], ends), (3, "\"ping\"", Some(&["\"2\"", "\"0.0000\""])));
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{out}");
    // One run prints its distribution unless an option forbids it.
    let line = "-t ping -n 3000";
    assert!(shown(&server, line).contains("100.0000% <="));
    assert!(!shown(&server, &format!("{line} --hide-histogram")).contains("100.0000% <="));
}

#[test]
fn connections_may_be_new_for_each_request_or_idle() {
    let server = Server::start(&["--io-threads", "3"]);
    let received = || server.info("total_connections_received").parse::<u64>().unwrap();
    let before = received();
    let figures = json(&server, "-k 0 -t set -n 300 -c 5");
    assert_eq!((&figures["keeps_connections"], &figures["errors"]), (&false.into(), &0.into()));
    assert!(received() >= before + 300);
    let before = received();
    let figures = json(&server, "--storm -n 300 -c 5 --resp 3");
    assert_eq!((&figures["workload"], &figures["errors"]), (&"connect".into(), &0.into()));
    assert!(received() >= before + 300);
    let limited = json(&server, "--storm --rps 100 -n 50 -c 5");
    assert!(limited["seconds"].as_f64().unwrap() >= 0.3, "{limited}");
    let mut command = bench(&server, "-I -c 7");
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let connected = || server.info("connected_clients").parse::<u64>().unwrap() >= 8;
    eventually("idle clients are connected", connected);
    assert_eq!(interrupted(child).status.code(), Some(130));
}

#[test]
fn unix_sockets_and_uris_name_the_server() {
    let server = Server::start(&["--unixsocket", "it.sock", "--requirepass", "a b"]);
    let port = server.port;
    let mut command = weft();
    let uri = format!("redis://default:a%20b@127.0.0.1:{port}/2");
    let output = output_of(command.args(["bench", "-q", "-n", "100", "-t", "set", "-u", &uri]));
    assert!(output.status.success(), "{}", texts(&output).1);
    let socket = server.path("it.sock");
    for more in [["-t", "get"], ["-k", "0"]] {
        let mut command = weft();
        command.args(["bench", "-q", "-n", "100", "-a", "a b", "-s"]).arg(&socket).args(more);
        let output = output_of(&mut command);
        assert!(output.status.success(), "{}", texts(&output).1);
    }
    // Without the password, and where no server listens.
    let output = output_of(&mut bench(&server, "-t get -n 10"));
    let errors = texts(&output).1;
    assert!(!output.status.success() && errors.contains("NOAUTH"), "{errors}");
    let output = output_of(weft().args(["bench", "-p", "1"]));
    let errors = texts(&output).1;
    assert!(
        !output.status.success() && errors.contains("cannot connect to 127.0.0.1:1"),
        "{errors}"
    );
}

#[test]
fn errors_are_never_part_of_results_in_silence() {
    let server = Server::start(&["--io-threads", "1"]);
    server.client().ok("SET string x");
    for form in ["", "-q", "--csv", "--json", "--run-count 2"] {
        let output = output_of(&mut bench(&server, &format!("-n 100 {form} lpush string x")));
        let (out, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{form}: {out}{errors}");
        assert!(
            errors.contains("WRONGTYPE") && errors.contains("figures mean nothing"),
            "{errors}"
        );
    }
    for (line, words) in [
        ("--key-minimum 5 --key-maximum 4", "the key range is empty"),
        ("--hot-keys 100 -r 100", "hot"),
        ("--key-size 5 -r 1000", "key names of at least"),
        ("--cluster", "CLUSTER"),
        ("--tls --insecure", "TLS"),
    ] {
        let output = output_of(&mut bench(&server, &format!("-n 10 {line}")));
        let errors = texts(&output).1;
        assert_eq!(output.status.code(), Some(1), "{line}: {errors}");
        assert!(errors.contains(words), "{line}: {errors}");
    }
}

/// An endless bench that has begun to load the server.
fn begun(server: &Server, line: &str) -> Child {
    let mut command = bench(server, &format!("-t ping --duration 1000 --warm-up 0 {line}"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_loaded = || {
        let commands = server.info("total_commands_processed").parse::<u64>();
        commands.is_ok_and(|commands| commands > 3000)
    };
    eventually("the server is under load", is_loaded);
    child
}

/// Its output after SIGINT.
fn interrupted(child: Child) -> Output {
    send_signal(child.id(), "INT");
    child.wait_with_output().unwrap()
}

#[test]
fn an_interruption_shows_the_results_so_far() {
    let server = Server::start(&["--io-threads", "1"]);
    let data = server.path("out.json");
    let line = format!("--run-count 5 --json --json-out-file {}", data.display());
    let output = interrupted(begun(&server, &line));
    let (out, errors) = texts(&output);
    assert_eq!((output.status.code(), errors.trim()), (Some(130), "interrupted"));
    let shown: Json = serde_json::from_str(&out).unwrap();
    assert!(shown["interrupted"] == true && shown["requests"].as_u64() > Some(0), "{shown}");
    let written: Json = serde_json::from_str(&fs::read_to_string(data).unwrap()).unwrap();
    assert_eq!(written[0], shown);
}

#[test]
fn an_interruption_ends_the_writing_of_keys() {
    let server = Server::start(&["--io-threads", "1"]);
    let at = format!("--at a=127.0.0.1:{} --no-floor", server.port);
    for line in ["--prefill".to_owned(), format!("compare {at}")] {
        server.client().ok("FLUSHALL");
        let mut command = weft();
        command.arg("bench").args(line.split(' ')).args(["-t", "get", "-r", "500000000"]);
        if line == "--prefill" {
            command.args(["-p", &server.port.to_string()]);
        }
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut client = server.client();
        eventually("keys are written", || client.ask("DBSIZE").int() > 3000);
        let output = interrupted(child);
        let (out, errors) = texts(&output);
        assert_eq!((output.status.code(), errors.trim()), (Some(130), "interrupted"), "{out}");
    }
}

#[test]
fn impossible_loads_are_refused_in_a_sentence() {
    let server = Server::start(&["--io-threads", "1"]);
    let huge = u64::MAX;
    for (option, words) in [
        ("-P", "a smaller --pipeline"),
        ("-c", "open files are needed"),
        ("--key-size", "a key name has at most"),
        ("-d", "a value has at most"),
    ] {
        let output = output_of(&mut bench(&server, &format!("-t set -n 10 {option} {huge}")));
        let errors = texts(&output).1;
        assert_eq!(output.status.code(), Some(1), "{option}: {errors}");
        assert!(errors.contains(words) && errors.lines().count() == 1, "{option}: {errors}");
    }
    let errors = texts(&output_of(&mut bench(&server, "-n 10 --threads 100000"))).1;
    assert!(errors.contains("1..=1024"), "{errors}");
    let errors = texts(&output_of(&mut bench(&server, "-n 0"))).1;
    assert!(errors.contains("at least 1 request"), "{errors}");
}

#[test]
fn a_preset_shows_its_command_lines_and_measures() {
    let run = |words: &[&str]| {
        let output = output_of(weft().args(["bench", "preset"]).args(words));
        let (out, errors) = texts(&output);
        assert!(output.status.success(), "{errors}");
        out
    };
    let out = run(&["get-set", "memory", "--show"]);
    assert_eq!(out.lines().count(), 4, "{out}");
    assert!(out.lines().all(|line| line.starts_with("weft bench ")), "{out}");
    let folder = server_folder();
    let out = run(&["--peers", folder.path().to_str().unwrap(), "--show"]);
    assert!(out.contains("/bin/redis-server "), "{out}");
    let output = output_of(weft().args(["bench", "preset", "--peers", "/"]));
    assert!(!output.status.success() && texts(&output).1.contains("holds no bin/redis-server"));
}

/// A folder that looks as if it held a peer.
fn server_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bin")).unwrap();
    fs::write(folder.path().join("bin/redis-server"), "").unwrap();
    folder
}

#[test]
fn a_server_that_dies_leaves_a_sentence_and_no_figures() {
    let mut server = Server::start(&["--io-threads", "1"]);
    let child = begun(&server, "-c 5");
    server.signal("KILL");
    server.wait();
    let output = child.wait_with_output().unwrap();
    let (out, errors) = texts(&output);
    assert_eq!((output.status.code(), out.as_str()), (Some(1), ""), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.starts_with("cannot keep a connection under load: "), "{errors}");
}

#[test]
fn a_comparison_says_whether_servers_differ() {
    let servers = [(); 2].map(|()| Server::start(&["--io-threads", "1"]));
    let at = |index: usize, name: &str| format!("--at {name}=127.0.0.1:{}", servers[index].port);
    let load = "-t get --no-floor --rounds 3 -n 400 -r 10 --warm-up 0";
    let line = format!("bench compare {} {} {load}", at(0, "a"), at(1, "b"));
    let run = |form: &str| {
        let words = line.split(' ').chain(form.split_whitespace());
        let output = output_of(weft().args(words));
        let (out, errors) = texts(&output);
        assert!(output.status.success(), "{errors}");
        out
    };
    let all: Json = serde_json::from_str(&run("--json")).unwrap();
    let difference = &all[0]["differences"][0];
    assert_eq!((&difference["name"], &difference["with"]), (&"a".into(), &"b".into()));
    let rate = &difference["requests_per_second"];
    assert!(rate["low_95"].as_f64() <= rate["ratio"].as_f64(), "{all}");
    assert!(rate["is_significant"].is_boolean(), "{all}");
    let page = servers[0].path("page.html");
    let out = run(&format!("--html {}", page.display()));
    assert!(out.contains("  a / b: requests/s "), "{out}");
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("get, pipeline 1: a / b: requests/s ") && page.contains("<svg"),
        "{page}"
    );
    assert!(run("--markdown").contains("\n- get, pipeline 1: a / b: requests/s "));
    let output = output_of(weft().args(["bench", "compare", "-t", "get"]));
    assert!(!output.status.success() && texts(&output).1.contains("--server NAME=COMMAND"));
}

#[test]
fn a_terminal_shows_how_it_goes_and_how_long_it_takes() {
    let server = Server::start(&["--io-threads", "1"]);
    let pair = native_pty_system().openpty(PtySize { cols: 120, ..PtySize::default() }).unwrap();
    let program = bench(&server, "-t ping --duration 600 --warm-up 0");
    let mut command = CommandBuilder::new(program.get_program());
    command.args(program.get_args());
    command.env("TERM", "xterm");
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let (mut reader, mut seen, start) =
        (pair.master.try_clone_reader().unwrap(), String::new(), Instant::now());
    let mut bytes = [0; 4096];
    let has_all =
        |seen: &str| ["ping: ", "/s, p99 ", " us, ", " s left"].iter().all(|w| seen.contains(w));
    while !has_all(&seen) {
        assert!(start.elapsed() < WAIT_MAX, "{seen}");
        let count = reader.read(&mut bytes).unwrap();
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    // Ctrl-C ends it, even if the terminal has no reader left.
    send_signal(child.process_id().unwrap(), "INT");
    while reader.read(&mut bytes).is_ok_and(|count| count > 0) {
        assert!(start.elapsed() < WAIT_MAX + Duration::from_secs(10));
    }
    assert_eq!(child.wait().unwrap().exit_code(), 130);
}
