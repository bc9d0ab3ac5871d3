//! The configuration and the probes of the manifests, run without a cluster.

use std::fs;
use std::path::Path;
use std::process::Command;

use deploy_test::{Service, file, linters, moved_copy, passes, yaml};
use serde_json::Value;

/// Long enough that the load does not end during the test.
const KEY_DELAY_US: &str = "1000000";
const KEYS: usize = 1000;

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents.iter().find(|document| document["kind"] == kind).unwrap()
}

/// Runs the probe `name` as the kubelet does in the container.
fn probe(container: &Value, name: &str, port: u16) -> bool {
    let command: Vec<String> =
        serde_json::from_value(container[name]["exec"]["command"].clone()).unwrap();
    assert_eq!(command[0], "weft-probe");
    passes(Command::new(file("probe")).args(&command[1..]).env("PORT", port.to_string()))
}

#[test]
fn probes_distinguish_a_loading_server_from_a_ready_one() {
    let Some(bin) = linters() else { return };
    let documents = yaml(&bin, &file("kubernetes/weft.yaml"));
    let pod = &of_kind(&documents, "StatefulSet")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let config = of_kind(&documents, "ConfigMap")["data"]["weft.conf"].as_str().unwrap();

    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(folder.path().join("secret.conf"), "requirepass secret\n").unwrap();
    let moved: [(&str, &Path); 2] = [("/var/lib/weft", &data), ("/etc/weft/secret", folder.path())];
    let config = moved_copy(config, &moved, &folder, "weft.configuration");
    let mut words = vec!["weft".to_owned(), "server".to_owned()];
    words.extend(serde_json::from_value::<Vec<String>>(container["args"].clone()).unwrap());
    let paths: [(&str, &Path); 1] = [("/etc/weft/config/weft.conf", &config)];

    let mut server = Service::start(&words, &paths, &[]);
    let fill = format!("EVAL \"for i = 1, {KEYS} do redis.call('SET', i, i) end\" 0");
    assert_eq!(server.ask_loaded(&["AUTH secret", &fill]), "$-1");
    assert_eq!(server.ask(&["AUTH secret", "SAVE"]), "+OK");
    assert!(probe(container, "livenessProbe", server.port));
    assert!(probe(container, "readinessProbe", server.port));
    drop(server);
    // Without an append-only file the server loads the RDB file, one key a second.
    fs::remove_dir_all(data.join("appendonlydir")).unwrap();
    words.extend(["--key-load-delay".to_owned(), KEY_DELAY_US.to_owned()]);
    let mut server = Service::start(&words, &paths, &[]);
    assert!(server.ask(&["AUTH secret", "GET 1"]).starts_with("-LOADING"));
    assert!(probe(container, "livenessProbe", server.port));
    assert!(!probe(container, "readinessProbe", server.port));
    let port = server.port;
    drop(server);
    assert!(!probe(container, "livenessProbe", port));
}

#[test]
fn the_manifests_refer_to_each_other() {
    let Some(bin) = linters() else { return };
    let documents = yaml(&bin, &file("kubernetes/weft.yaml"));
    let set = &of_kind(&documents, "StatefulSet")["spec"];
    let pod = &set["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["resources"]["requests"], container["resources"]["limits"]);
    assert_eq!(container["resources"]["limits"]["memory"], "4Gi");
    let config = of_kind(&documents, "ConfigMap")["data"]["weft.conf"].as_str().unwrap();
    assert!(config.contains("maxmemory 3gb\n"));
    // The folders in the configuration are mounted.
    let mounts = container["volumeMounts"].as_array().unwrap();
    let paths: Vec<&str> =
        mounts.iter().map(|mount| mount["mountPath"].as_str().unwrap()).collect();
    assert!(config.contains(&format!("dir {}\n", paths[0])));
    assert!(container["args"][0].as_str().unwrap().starts_with(paths[1]));
    assert!(config.contains(&format!("include {}/", paths[2])));
    // Services and rules select the pod by its label and its port by name.
    let label = &set["template"]["metadata"]["labels"];
    assert_eq!(&set["selector"]["matchLabels"], label);
    for service in documents.iter().filter(|document| document["kind"] == "Service") {
        assert_eq!(&service["spec"]["selector"], label);
        assert_eq!(service["spec"]["ports"][0]["targetPort"], container["ports"][0]["name"]);
    }
    let policy = &of_kind(&documents, "NetworkPolicy")["spec"];
    assert_eq!(&policy["podSelector"]["matchLabels"], label);
    assert_eq!(policy["ingress"][0]["ports"][0]["port"], container["ports"][0]["name"]);
    let named = |name: &Value| documents.iter().any(|other| other["metadata"]["name"] == *name);
    assert!(named(&set["serviceName"]));
}
