use super::*;

fn names(settings: &Tls) -> Result<Vec<String>, String> {
    let (provider, _) = spoken(settings).map_err(|e| e.to_string())?;
    Ok(provider.cipher_suites.iter().map(|s| format!("{:?}", s.suite())).collect())
}

#[test]
fn suites_are_known_by_their_names_of_the_field() {
    let with =
        |names: &[&str]| Tls { cipher_suites: names.iter().map(|n| (*n).to_owned()).collect(), ..Tls::default() };
    assert_eq!(names(&Tls::default()).unwrap().len(), 9);
    let thirteen = ["TLS13_AES_256_GCM_SHA384", "TLS13_AES_128_GCM_SHA256", "TLS13_CHACHA20_POLY1305_SHA256"];
    let twelve = [
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    ];
    for name in twelve {
        assert_eq!(names(&with(&[name])).unwrap(), [&thirteen[..], &[name]].concat());
    }
    assert_eq!(
        names(&with(&["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_RSA_WITH_AES_128_CBC_SHA"])).unwrap()[3..],
        [twelve[5]]
    );
    assert_eq!(names(&with(&["TLS_AES_128_GCM_SHA256"])).unwrap(), thirteen);
    assert!(names(&with(&["TLS_RSA_WITH_AES_128_CBC_SHA", "nonsense"])).unwrap_err().contains("nonsense"));
}

#[test]
fn versions_and_groups_are_those_of_the_settings() {
    let versions = |min: &str| {
        let settings = Tls { min_version: min.to_owned(), ..Tls::default() };
        spoken(&settings).map(|(_, v)| v.len()).map_err(|e| e.to_string())
    };
    for (min, many) in [("", 2), ("VersionTLS10", 2), ("VersionTLS11", 2), ("VersionTLS12", 2), ("VersionTLS13", 1)] {
        assert_eq!(versions(min), Ok(many), "{min}");
    }
    assert!(versions("1.2").is_err());
    let (provider, _) = spoken(&Tls { curves: vec![23, 4588], ..Tls::default() }).unwrap();
    assert_eq!(provider.kx_groups.iter().map(|g| u16::from(g.name())).collect::<Vec<_>>(), [23]);
}
