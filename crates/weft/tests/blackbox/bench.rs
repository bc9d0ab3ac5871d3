//! `weft bench` with every workload against this very server, with few keys.

use serde_json::Value as Json;
use tools::bench::workload::{Row, TABLE};

use crate::server::{output_of, weft};
use crate::{Client, Server, Value};

/// As many workloads at once as have less to say than a pipe holds.
const ROWS_AT_ONCE: usize = 20;

/// Whether the server has the first command of each of the row's requests.
fn is_known(row: &Row, client: &mut Client) -> bool {
    let requests = [row.read, row.write, row.prepare].into_iter().flatten();
    let mut names = requests.filter_map(|request| request.split_whitespace().next());
    names.all(|name| client.ask(&format!("COMMAND INFO {name}")).items() != [Value::Nil])
}

#[test]
fn every_workload_runs_without_an_error_or_is_unknown() {
    let server = Server::start(&["--io-threads", "1"]);
    let (port, mut client) = (server.port.to_string(), server.client());
    let load = ["-n", "500", "--keys", "100", "--warm-up", "0", "--prefill"];
    for rows in TABLE.chunks(ROWS_AT_ONCE) {
        let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        let mut command = weft();
        command.args(["bench", "--json", "-p", &port, "-t", &names.join(",")]).args(load);
        let output = output_of(&mut command);
        let (out, errors) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
        let (out, errors) = (out.unwrap(), errors.unwrap());
        let shown: Vec<Json> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(shown.len(), rows.len(), "{errors}");
        let mut all_known = true;
        for (row, shown) in rows.iter().zip(shown) {
            assert_eq!(shown["workload"], row.name);
            if is_known(row, &mut client) {
                assert_eq!(shown["first_error"], "", "{shown}");
                assert_eq!(shown["aborted_per_request"], 0.0, "{shown}");
                assert!(shown["requests"].as_u64().unwrap() >= 500, "{shown}");
            } else {
                all_known = false;
                assert!(shown.to_string().contains("ERR unknown command"), "{shown}");
            }
        }
        assert_eq!(output.status.success(), all_known, "{errors}");
    }
}
