use serde_json::json;

use super::*;
use crate::fixture::service;

fn text(env: &Environment) -> Vec<String> {
    let mut out: Vec<_> =
        env.vars().iter().map(|v| format!("{}={}", v.name, String::from_utf8_lossy(&v.value))).collect();
    out.sort();
    out
}

#[test]
fn a_service_becomes_variables() {
    let web = service(
        "ns",
        "my-web",
        "10.96.0.7",
        json!([{"name": "http-1", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]),
    );
    let want = [
        "MY_WEB_PORT=tcp://10.96.0.7:80",
        "MY_WEB_PORT_53_UDP=udp://10.96.0.7:53",
        "MY_WEB_PORT_53_UDP_ADDR=10.96.0.7",
        "MY_WEB_PORT_53_UDP_PORT=53",
        "MY_WEB_PORT_53_UDP_PROTO=udp",
        "MY_WEB_PORT_80_TCP=tcp://10.96.0.7:80",
        "MY_WEB_PORT_80_TCP_ADDR=10.96.0.7",
        "MY_WEB_PORT_80_TCP_PORT=80",
        "MY_WEB_PORT_80_TCP_PROTO=tcp",
        "MY_WEB_SERVICE_HOST=10.96.0.7",
        "MY_WEB_SERVICE_PORT=80",
        "MY_WEB_SERVICE_PORT_DNS=53",
        "MY_WEB_SERVICE_PORT_HTTP_1=80",
    ];
    assert_eq!(text(&service_environment(&[web], "ns", true)), want);
}

#[test]
fn an_ipv6_address_is_bracketed_in_urls_only() {
    let env = service_environment(&[service("ns", "a", "fd00::7", json!([{"port": 80}]))], "ns", true);
    assert_eq!(env.get("A_PORT"), Some(b"tcp://[fd00::7]:80".as_slice()));
    assert_eq!(env.get("A_PORT_80_TCP_ADDR"), Some(b"fd00::7".as_slice()));
    assert_eq!(env.get("A_SERVICE_PORT_"), None, "an unnamed port has no variable of its own");
}

#[test]
fn the_right_services_are_chosen() {
    let port = json!([{"port": 1}]);
    let all = [
        service("ns", "own", "1.0.0.1", port.clone()),
        service("other", "foreign", "1.0.0.2", port.clone()),
        service("default", "kubernetes", "1.0.0.3", port.clone()),
        service("default", "else", "1.0.0.4", port.clone()),
        service("ns", "headless", "None", port.clone()),
        service("ns", "unset", "", port.clone()),
    ];
    let hosts = |services: &[Service], links: bool| {
        let env = service_environment(services, "ns", links);
        let names = env.vars().iter().filter_map(|v| v.name.strip_suffix("_SERVICE_HOST").map(str::to_owned));
        names.collect::<Vec<_>>()
    };
    assert_eq!(hosts(&all, true), ["KUBERNETES", "OWN"]);
    assert_eq!(hosts(&all, false), ["KUBERNETES"], "the API's own service does not depend on links");

    let mut shadowed = all.to_vec();
    shadowed.push(service("ns", "kubernetes", "9.9.9.9", port.clone()));
    let host = |s: &[Service]| service_environment(s, "ns", true).get("KUBERNETES_SERVICE_HOST").map(<[u8]>::to_vec);
    assert_eq!(host(&shadowed), Some(b"9.9.9.9".to_vec()), "one of the same name in the own namespace wins");
    shadowed.reverse();
    assert_eq!(host(&shadowed), Some(b"9.9.9.9".to_vec()), "whatever the order");
    shadowed[0] = service("ns", "kubernetes", "None", port);
    assert_eq!(host(&shadowed), Some(b"1.0.0.3".to_vec()), "unless it has no address");
}
