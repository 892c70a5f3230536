use super::*;

#[test]
fn bearer_tokens_are_found_as_servers_of_the_field_find_them() {
    let rows = [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        ("  BEARER abc  ", Some("abc")),
        ("Bearer abc def", Some("abc")),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearer  abc", None),
        ("Basic abc", None),
        ("", None),
    ];
    for (header, token) in rows {
        assert_eq!(bearer(header), token, "{header:?}");
    }
}

#[test]
fn a_token_among_subprotocols_is_taken_out() {
    let found = |headers: &[&str]| websocket(headers.iter().copied());
    let some = |token: &str, rest: &str| Ok(Some(Protocols { token: token.to_owned(), rest: rest.to_owned() }));
    assert_eq!(found(&[]), Ok(None));
    assert_eq!(found(&["v5.channel.k8s.io, v4.channel.k8s.io"]), Ok(None));
    assert_eq!(
        found(&["base64url.bearer.authorization.k8s.io.dG9rZW4, v5.channel.k8s.io,v4.channel.k8s.io"]),
        some("token", "v5.channel.k8s.io,v4.channel.k8s.io")
    );
    assert_eq!(
        found(&["v5.channel.k8s.io", "base64url.bearer.authorization.k8s.io.Pz8_Pj4-"]),
        some("???>>>", "v5.channel.k8s.io")
    );
    assert_eq!(found(&["base64url.bearer.authorization.k8s.io.dG9rZW4"]), Err(BadCredential::Alone));
    let two = "base64url.bearer.authorization.k8s.io.YQ,base64url.bearer.authorization.k8s.io.Yg,x";
    assert_eq!(found(&[two]), Err(BadCredential::TwoTokens));
    for bad in ["Y", "Y!", "YQ==", "_w"] {
        let header = format!("base64url.bearer.authorization.k8s.io.{bad},x");
        assert_eq!(found(&[&header]), Err(BadCredential::Undecodable), "{bad}");
    }
}
