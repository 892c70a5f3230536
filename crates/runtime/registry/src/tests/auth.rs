//! Who asks.

use super::fake::{Lock, redirect};
use super::*;

fn tokens(fake: &Fake, user: Option<(&str, &str)>) -> Lock {
    Lock::Token {
        realm: format!("http://{}/token", fake.address),
        token: "t0ken".to_owned(),
        user: user.map(|(u, p)| (u.to_owned(), p.to_owned())),
        refresh: None,
        life: 300,
    }
}

#[tokio::test]
async fn a_password_opens() {
    let made = Made::usual();
    let fake = Fake::with(&made).await;
    fake.state().lock = Lock::Basic("me".to_owned(), "s3cret".to_owned());
    let (node, name) = (Node::new(), fake.name("team/app:1"));
    let image = node.pull_as(&name, password("me", "s3cret")).await.unwrap();
    node.must_have(&image, &made);
    assert_eq!(fake.header("", "authorization").iter().filter(|h| h.is_none()).count(), 1, "it is asked for once");
    for wrong in [None, password("me", "wr0ng"), Some(Credentials::IdentityToken("x".to_owned()))] {
        let error = Node::new().pull_as(&name, wrong).await.unwrap_err();
        assert!(error.is_denied(), "{error}");
        assert!(error.to_string().contains("answered 401 (who is there)"), "{error}");
        assert!(!error.to_string().contains("wr0ng"), "{error}");
    }
}

#[tokio::test]
async fn a_token_is_got_once_for_anybody_and_for_a_user() {
    let made = Made::usual();
    for user in [None, Some(("me", "s3cret"))] {
        let fake = Fake::with(&made).await;
        fake.state().lock = tokens(&fake, user);
        let node = Node::new();
        let credentials = user.and_then(|(u, p)| password(u, p));
        let image = node.pull_as(&fake.name("team/app:1"), credentials).await.unwrap();
        node.must_have(&image, &made);
        let asked = fake.lines("/token");
        let account = user.map(|_| "account=me&").unwrap_or_default();
        assert_eq!(asked, [format!("GET /token?{account}service=fake&scope=repository%3Ateam%2Fapp%3Apull")]);
    }
}

#[tokio::test]
async fn a_server_of_tokens_that_refuses_is_named() {
    let fake = Fake::with(&Made::usual()).await;
    fake.state().lock = tokens(&fake, Some(("me", "s3cret")));
    let error = Node::new().pull_as(&fake.name("team/app:1"), password("me", "wr0ng")).await.unwrap_err();
    assert!(error.is_denied());
    assert!(error.to_string().contains("answered 401 (incorrect username or password)"), "{error}");
    if let Lock::Token { realm, .. } = &mut fake.state().lock {
        *realm = "nonsense".to_owned();
    }
    let error = Node::new().refusal(&fake.name("team/app:1")).await;
    assert!(error.contains("is no URL"), "{error}");
}

#[tokio::test]
async fn a_token_that_ran_out_is_got_again() {
    let made = Made::usual();
    let fake = Fake::with(&made).await;
    fake.state().lock = tokens(&fake, None);
    fake.fault(
        &format!("GET /v2/team/app/blobs/{}", made.id()),
        1,
        Act::Header(401, "www-authenticate", format!("Bearer realm=\"http://{}/token\"", fake.address)),
    );
    if let Lock::Token { life, .. } = &mut fake.state().lock {
        *life = 0;
    }
    let node = Node::new();
    let image = node.pull(&fake.name("team/app:1")).await.unwrap();
    node.must_have(&image, &made);
    assert!(fake.lines("/token").len() > 2, "each time when it is good for no time at all");
}

#[tokio::test]
async fn other_tokens_are_shown_where_they_belong() {
    let made = Made::usual();
    let fake = Fake::with(&made).await;
    fake.state().lock = Lock::Token {
        realm: format!("http://{}/token", fake.address),
        token: "t0ken".to_owned(),
        user: None,
        refresh: Some("r3fresh".to_owned()),
        life: 300,
    };
    let name = fake.name("team/app:1");
    let node = Node::new();
    node.pull_as(&name, Some(Credentials::IdentityToken("r3fresh".to_owned()))).await.unwrap();
    assert_eq!(fake.lines("/token"), ["POST /token"]);
    let thief = Fake::start().await;
    fake.fault("/token", 1, redirect(format!("http://{}/token", thief.address)));
    let error = Node::new().pull_as(&name, Some(Credentials::IdentityToken("r3fresh".to_owned()))).await.unwrap_err();
    assert!(error.to_string().contains("answered 307"), "{error}");
    assert_eq!(thief.lines(""), Vec::<String>::new(), "a form is for who was asked");
    fake.state().seen.clear();
    Node::new().pull_as(&name, Some(Credentials::RegistryToken("t0ken".to_owned()))).await.unwrap();
    assert_eq!(fake.lines("/token"), Vec::<String>::new());
    let error = Node::new().pull_as(&name, Some(Credentials::RegistryToken("wrong".to_owned()))).await.unwrap_err();
    assert!(error.is_denied(), "{error}");
}

#[tokio::test]
async fn a_redirect_takes_no_secrets_to_another_host() {
    let made = Made::usual();
    let storage = Fake::with(&made).await;
    let fake = Fake::with(&made).await;
    fake.state().lock = Lock::Basic("me".to_owned(), "s3cret".to_owned());
    for layer in &made.layers {
        let path = format!("/v2/team/app/blobs/{}", Digest::of(layer));
        // Of each layer the registry sends elsewhere; it goes on there after a break.
        fake.fault(&path, 9, redirect(format!("http://{}{path}", storage.address)));
    }
    storage.fault(&made.layer(0).to_string(), 1, Act::Cut(400_000));
    let node = Node::new();
    let image = node.pull_as(&fake.name("team/app:1"), password("me", "s3cret")).await.unwrap();
    node.must_have(&image, &made);
    assert_eq!(storage.lines("/blobs/").len(), 4);
    assert!(storage.header("", "authorization").iter().all(Option::is_none));
    assert!(storage.header(&made.layer(0).to_string(), "range").iter().any(Option::is_some));
    // Another host that wants to know who asks is not told.
    storage.state().lock = Lock::Basic("me".to_owned(), "s3cret".to_owned());
    storage.state().seen.clear();
    let error = Node::new().pull_as(&fake.name("team/app:1"), password("me", "s3cret")).await.unwrap_err();
    assert!(error.to_string().contains("answered 401"), "{error}");
    assert!(storage.header("", "authorization").iter().all(Option::is_none));
}

#[test]
fn secrets_stay_out_of_logs() {
    let all = [
        password("me", "s3cret").unwrap(),
        Credentials::IdentityToken("s3cret".to_owned()),
        Credentials::RegistryToken("s3cret".to_owned()),
    ];
    assert!(!format!("{all:?}").contains("s3cret"));
}
