//! What is read, and what is refused.

use serde_json::{Value, json};

use super::{Auth, parse_config_json, parse_dockercfg};

fn shown(r: Result<super::AuthMap, super::CredentialError>) -> String {
    match r {
        Ok(map) => map
            .iter()
            .map(|(k, a)| format!("{k}={}:{}:{}:{}", a.username, a.password, a.email, a.identity_token))
            .collect::<Vec<_>>()
            .join(" "),
        Err(e) => e.to_string(),
    }
}

#[test]
fn entries_table() {
    let rows: [(&str, Value, &str); 11] = [
        ("user and password", json!({"r": {"username": "u", "password": "p", "email": "e"}}), "r=u:p:e:"),
        ("auth", json!({"r": {"auth": "dTpwOnE="}}), "r=u:p:q::"),
        ("auth wins", json!({"r": {"username": "x", "password": "y", "auth": "dTpw"}}), "r=u:p::"),
        ("identity token", json!({"r": {"identitytoken": "t"}}), "r=:::t"),
        ("unknown fields", json!({"r": {"username": "u", "new": 1}}), "r=u:::"),
        ("two", json!({"b": {"auth": "dTpw"}, "a": {}}), "a=::: b=u:p::"),
        ("no base64", json!({"r": {"auth": "%%"}}), "auth of \"r\" is not base64"),
        (
            "no colon",
            json!({"r": {"auth": "dXNlcg=="}}),
            "unable to parse auth field, must be formatted as base64(username:password)",
        ),
        ("a number", json!({"r": {"username": 1}}), "the entry \"r\" must be an object of strings"),
        ("a text", json!({"r": "u:p"}), "the entry \"r\" must be an object of strings"),
        ("a list", json!([]), "auths must be an object of strings"),
    ];
    for (name, auths, expected) in rows {
        let text = json!({"auths": auths, "credsStore": "ignored"}).to_string();
        assert_eq!(shown(parse_config_json(text.as_bytes())), expected, "{name}");
        let old = shown(parse_dockercfg(auths.to_string().as_bytes()));
        assert_eq!(old, expected.replace("auths must", "the document must"), "{name} in a dockercfg");
    }
}

#[test]
fn a_file_without_credentials_has_none_and_a_broken_one_is_refused_without_being_quoted() {
    assert_eq!(shown(parse_config_json(b"{}")), "");
    assert_eq!(shown(parse_config_json(b"{\"auths\": null}")), "");
    assert_eq!(shown(parse_config_json(b"{\"auths\": {\"r\": secret")), "invalid JSON at line 1 column 17");
    assert_eq!(shown(parse_config_json(b"[]")), "the document must be an object of strings");
}

#[test]
fn passwords_stay_out_of_debug_texts() {
    let auth = Auth { username: "u".into(), password: "hidden".into(), ..Auth::default() };
    assert_eq!(format!("{auth:?}"), "Auth(\"u\", <secret>)");
}

#[test]
fn base64_may_have_all_of_its_padding_or_none() {
    for (text, expected) in [
        ("", Some("")),
        ("dTpw", Some("u:p")),
        (" dXNlcjpwYXM=", Some("user:pas")),
        ("dXNlcjpwYXM", Some("user:pas")),
        ("dXNlcjpwYQ==", Some("user:pa")),
        ("dXNlcjpwYR==", Some("user:pa")),
        ("dXNl\r\ncjpwYQ==\n", Some("user:pa")),
        ("dXNlcjpwYQ=", None),
        ("dX=NlcjpwYQ", None),
        ("d", None),
        ("dXNl-jpw", None),
    ] {
        assert_eq!(super::decoded(text).ok(), expected.map(|e| e.as_bytes().to_vec()), "{text:?}");
    }
}
