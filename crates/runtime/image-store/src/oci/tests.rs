use super::*;

fn digest(n: u8) -> Digest {
    Digest::of(&[n])
}

fn descriptor(n: u8, media_type: &str) -> String {
    format!(r#"{{"mediaType":"{media_type}","digest":"{}","size":{n}}}"#, digest(n))
}

fn manifest(config: &str, layers: &[&str]) -> String {
    let layers: Vec<String> = layers.iter().map(|l| descriptor(2, l)).collect();
    let config = descriptor(1, config);
    format!(r#"{{"schemaVersion":2,"config":{config},"layers":[{}]}}"#, layers.join(","))
}

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

#[test]
fn manifests_of_both_kinds_are_read() {
    let docker = "application/vnd.docker.image.rootfs.diff.tar.gzip";
    for (config, layer) in [(CONFIG, LAYER), ("application/vnd.docker.container.image.v1+json", docker)] {
        let text = manifest(config, &[layer, layer]);
        let Document::Manifest(m) = Document::parse(text.as_bytes(), "").unwrap() else { panic!("{text}") };
        assert_eq!((m.config.digest, m.layers.len(), m.layers[0].size), (digest(1), 2, 2));
    }
    let index = format!(r#"{{"schemaVersion":2,"manifests":[{}]}}"#, descriptor(3, media::OCI_MANIFEST));
    let Document::Index(list) = Document::parse(index.as_bytes(), media::OCI_INDEX).unwrap() else { panic!() };
    assert_eq!(list[0].digest, digest(3));
}

#[test]
fn documents_that_mean_harm_or_something_else_are_refused() {
    let good = manifest(CONFIG, &[LAYER]);
    let both = good.replace(r#""layers""#, r#""manifests":[],"layers""#);
    let many = manifest(CONFIG, &[LAYER; 501]);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let rows = [
        (both.as_str(), "", "an index at once"),
        (&good, media::OCI_INDEX, "an index at once"),
        (&good, "application/vnd.docker.distribution.manifest.list.v2+json; charset=utf-8", "an index at once"),
        (r#"{"schemaVersion":1,"fsLayers":[]}"#, "", "first version"),
        (r#"{"schemaVersion":1,"fsLayers":[],"config":7}"#, "", "first version"),
        (r#"{"schemaVersion":2}"#, "", "neither"),
        (r#"{"schemaVersion":3}"#, "", "schemaVersion"),
        ("{", "", "not a document"),
        ("[]", "", "not a document"),
        (&deep, "", "not a document"),
        (&manifest("application/vnd.cncf.helm.config.v1+json", &[LAYER]), "", "helm"),
        (&manifest(CONFIG, &["application/vnd.oci.image.layer.v1.tar+encrypted"]), "", "cannot be unpacked"),
        (&manifest(CONFIG, &["application/vnd.docker.image.rootfs.diff.tar.lz4"]), "", "cannot be unpacked"),
        (&many, "", "501 layers"),
        (&good.replace("sha256:", "sha512:"), "", "no sha256"),
        (&good.replace(r#""size":2"#, r#""size":-1"#), "", "not a document"),
    ];
    for (text, told, reason) in rows {
        let error = Document::parse(text.as_bytes(), told).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}, not {reason}");
    }
}

fn platform(text: &str) -> Platform {
    text.parse().unwrap()
}

#[test]
fn the_nearest_image_for_a_machine_is_chosen() {
    let offered =
        ["linux/386", "linux/arm/v5", "linux/arm/v7", "linux/arm64", "linux/amd64/v3", "linux/amd64", "linux/arm/v6"];
    let list = |names: &[&str]| -> Vec<Descriptor> {
        let one = |name: &&str| Descriptor {
            media_type: media::OCI_MANIFEST.to_owned(),
            digest: Digest::of(name.as_bytes()),
            size: 1,
            platform: Some(platform(name)),
            annotations: BTreeMap::new(),
        };
        names.iter().map(one).collect()
    };
    let rows: &[(&str, &[&str], Option<&str>)] = &[
        ("linux/amd64", &offered, Some("linux/amd64")),
        ("linux/amd64/v3", &offered, Some("linux/amd64/v3")),
        ("linux/amd64/v2", &offered, Some("linux/amd64")),
        ("linux/arm64/v8", &offered, Some("linux/arm64")),
        ("linux/arm/v6", &offered, Some("linux/arm/v6")),
        ("linux/arm", &offered, Some("linux/arm/v7")),
        ("linux/arm64", &["linux/arm/v6", "linux/arm/v7"], Some("linux/arm/v7")),
        ("linux/amd64", &["linux/386"], Some("linux/386")),
        ("linux/amd64", &["linux/amd64/v4"], None),
        ("linux/riscv64", &offered, None),
        ("linux/386", &["linux/amd64"], None),
    ];
    for (machine, offered, want) in rows {
        let found = choose(&list(offered), &platform(machine)).map(|d| d.digest).ok();
        assert_eq!(found, want.map(|w| Digest::of(w.as_bytes())), "{machine} of {offered:?}");
    }
    let error = choose(&list(&["linux/arm64", "linux/386"]), &platform("linux/s390x")).unwrap_err().to_string();
    assert_eq!(error, "no image for linux/s390x; there are: linux/arm64, linux/386");
    let mut plain = list(&["linux/amd64"]);
    plain[0].platform = None;
    assert!(choose(&plain, &platform("linux/s390x")).is_ok(), "its configuration will say");
    assert!(choose(&[], &platform("linux/s390x")).is_err());
}

#[test]
fn a_configuration_is_read_with_all_that_builders_leave_out() {
    let text = format!(
        r#"{{"os":"linux","architecture":"amd64","created":"2026-01-01T00:00:00Z","history":[{{}}],
        "config":{{"User":"1000:1000","Env":["A=b"],"Cmd":null,"Entrypoint":["/x"],"ExposedPorts":{{"80/tcp":{{}}}},
        "Volumes":null,"WorkingDir":"/w","Labels":{{"a":"b"}},"StopSignal":"SIGINT","OnBuild":null}},
        "rootfs":{{"type":"layers","diff_ids":["{}"]}}}}"#,
        digest(1)
    );
    let config = ImageConfig::parse(text.as_bytes()).unwrap();
    assert_eq!(config.config.user, "1000:1000");
    assert_eq!((config.config.cmd.len(), config.config.exposed_ports.as_slice()), (0, &["80/tcp".to_owned()][..]));
    assert_eq!(config.rootfs.diff_ids, [digest(1)]);
    config.fits(1, &platform("linux/amd64")).unwrap();
    assert!(config.fits(2, &platform("linux/amd64")).unwrap_err().to_string().contains("1 layers, its manifest 2"));
    assert!(config.fits(1, &platform("linux/arm64")).unwrap_err().to_string().contains("there are: linux/amd64"));
    for bare in
        [r#"{"os":"linux","architecture":"arm64","config":null,"rootfs":{"diff_ids":null}}"#, r#"{"rootfs":{}}"#]
    {
        ImageConfig::parse(bare.as_bytes()).unwrap();
    }
    ImageConfig::parse(b"{}").unwrap_err();
}

#[test]
fn platforms_are_written_in_one_way() {
    assert_eq!(platform("linux/x86_64").to_string(), "linux/amd64");
    for bad in ["", "linux", "windows/amd64", "linux/", "a/b/c/d"] {
        assert!(bad.parse::<Platform>().is_err(), "{bad}");
    }
}
