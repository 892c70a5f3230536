use super::*;

fn user() -> User {
    let extra = BTreeMap::from([("scope".to_owned(), vec!["a".to_owned()])]);
    User { name: "u".to_owned(), uid: "7".to_owned(), groups: vec!["g".to_owned()], extra }
}

#[test]
fn a_token_review_has_the_token_and_no_audiences() {
    let (path, body) = token_review("secret");
    assert_eq!(path, "/apis/authentication.k8s.io/v1/tokenreviews");
    assert_eq!(body["spec"], json!({ "token": "secret" }));
}

#[test]
fn an_access_review_says_who_wants_what_of_which_node() {
    let (path, body) = access_review(&user(), "get", "metrics", "n1");
    assert_eq!(path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
    let attributes =
        json!({ "verb": "get", "version": "v1", "resource": "nodes", "subresource": "metrics", "name": "n1" });
    assert_eq!(
        body["spec"],
        json!({ "resourceAttributes": attributes, "user": "u", "uid": "7", "groups": ["g"], "extra": { "scope": ["a"] } })
    );
}

#[test]
fn answers_about_tokens_are_understood() {
    let full = br#"{"status":{"authenticated":true,"user":{"username":"u","uid":"7","groups":["g"],"extra":{"scope":["a"]}},"audiences":["x"]}}"#;
    assert_eq!(decide_token(full), Ok(Some(user())));
    let bare = br#"{"status":{"authenticated":true,"user":{"username":"u","groups":null}}}"#;
    assert_eq!(decide_token(bare).unwrap().unwrap().name, "u");
    assert_eq!(decide_token(br#"{"status":{"error":"[invalid bearer token]"}}"#), Ok(None));
    assert_eq!(decide_token(br#"{"status":{"authenticated":false,"user":{"username":"u"}}}"#), Ok(None));
    assert_eq!(decide_token(br#"{}"#), Ok(None));
    assert_eq!(decide_token(br#"{"status":{"authenticated":true}}"#), Err(BadReview::NoName));
    assert!(matches!(decide_token(b"<html>"), Err(BadReview::Undecodable(_))));
    assert!(matches!(decide_token(br#"{"status":{"authenticated":"yes"}}"#), Err(BadReview::Undecodable(_))));
}

#[test]
fn answers_about_access_are_understood() {
    assert_eq!(decide_access(br#"{"status":{"allowed":true}}"#), Ok(true));
    assert_eq!(decide_access(br#"{"status":{"allowed":false,"denied":true}}"#), Ok(false));
    assert_eq!(decide_access(br#"{"status":{"allowed":false,"reason":"no opinion"}}"#), Ok(false));
    assert_eq!(decide_access(br#"{}"#), Ok(false));
    assert_eq!(decide_access(br#"{"status":{"allowed":true,"denied":true}}"#), Err(BadReview::Contradiction));
    assert!(matches!(decide_access(b""), Err(BadReview::Undecodable(_))));
}
