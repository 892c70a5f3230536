//! Every rule of the table in interfaces 8.6.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Provider, TokenAttributes, files_of_folder, load};

fn load_one(text: &str) -> Result<Vec<Provider>, String> {
    load(&[(PathBuf::from("/etc/c.yaml"), text.to_owned())])
        .map_err(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

fn config(providers: Value) -> String {
    json!({"kind": "CredentialProviderConfig", "apiVersion": "kubelet.config.k8s.io/v1", "providers": providers})
        .to_string()
}

fn provider(changes: Value) -> Value {
    let mut p = json!({
        "name": "plug", "matchImages": ["*.r.io"], "defaultCacheDuration": "10m",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
    });
    p.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    p
}

fn token(changes: Value) -> Value {
    let mut t = json!({"serviceAccountTokenAudience": "a", "requireServiceAccount": true, "cacheType": "Token"});
    t.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    provider(json!({"tokenAttributes": t}))
}

#[test]
fn a_whole_configuration_is_read_from_yaml_and_json() {
    let yaml = "
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ecr
  matchImages: ['*.dkr.ecr.*.amazonaws.com', 'r.io:5000/x']
  defaultCacheDuration: 12h
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [get]
  env:
  - {name: A, value: b}
  tokenAttributes:
    serviceAccountTokenAudience: aud
    cacheType: ServiceAccount
    requireServiceAccount: true
    requiredServiceAccountAnnotationKeys: [example.com/Role]
    optionalServiceAccountAnnotationKeys: [more]
";
    let expected = Provider {
        name: "ecr".into(),
        match_images: vec!["*.dkr.ecr.*.amazonaws.com".into(), "r.io:5000/x".into()],
        default_cache_duration: Duration::from_secs(12 * 3600),
        api_version: "credentialprovider.kubelet.k8s.io/v1".into(),
        args: vec!["get".into()],
        env: vec![("A".into(), "b".into())],
        token: Some(TokenAttributes {
            audience: "aud".into(),
            require_service_account: true,
            cache_by_token: false,
            required_annotations: vec!["example.com/Role".into()],
            optional_annotations: vec!["more".into()],
        }),
    };
    assert_eq!(load_one(yaml), Ok(vec![expected]));
    assert_eq!(load_one(&config(json!([provider(json!({}))]))).unwrap()[0].token, None);
}

#[test]
fn errors_name_file_key_and_reason() {
    let versions = "credentialprovider.kubelet.k8s.io/v1, credentialprovider.kubelet.k8s.io/v1alpha1, credentialprovider.kubelet.k8s.io/v1beta1";
    let rows = [
        (provider(json!({"name": null})), "providers[0].name: is required".to_owned()),
        (provider(json!({"name": "a/b"})), "providers[0].name: provider name cannot contain '/'".to_owned()),
        (provider(json!({"name": "a b"})), "providers[0].name: provider name cannot contain spaces".to_owned()),
        (provider(json!({"name": "."})), "providers[0].name: provider name cannot be '.'".to_owned()),
        (provider(json!({"name": ".."})), "providers[0].name: provider name cannot be '..'".to_owned()),
        (provider(json!({"apiVersion": "v1"})), format!("providers[0].apiVersion: \"v1\" is not supported ({versions})")),
        (provider(json!({"apiVersion": null})), format!("providers[0].apiVersion: \"\" is not supported ({versions})")),
        (provider(json!({"matchImages": []})), "providers[0].matchImages: at least 1 item in matchImages is required".to_owned()),
        (provider(json!({"matchImages": ["ok.io", "%invalid%"]})), "providers[0].matchImages[1]: match image \"%invalid%\" is invalid: invalid URL escape \"%in\"".to_owned()),
        (provider(json!({"matchImages": ["https://r.io"]})), "providers[0].matchImages[0]: match image \"https://r.io\" is invalid: must not have a scheme".to_owned()),
        (provider(json!({"defaultCacheDuration": null})), "providers[0].defaultCacheDuration: is required".to_owned()),
        (provider(json!({"defaultCacheDuration": "-1s"})), "providers[0].defaultCacheDuration: \"-1s\" must be greater than or equal to 0".to_owned()),
        (provider(json!({"defaultCacheDuration": "soon"})), "providers[0].defaultCacheDuration: \"soon\" is not a duration such as 10m or 1h30m".to_owned()),
        (provider(json!({"defaultCacheDuration": 5})), "providers[0].defaultCacheDuration: invalid type: integer `5`, expected a string".to_owned()),
        (provider(json!({"surprise": 1})), "providers[0].surprise: unknown field `surprise`, expected one of `name`, `matchImages`, `defaultCacheDuration`, `apiVersion`, `args`, `env`, `tokenAttributes`".to_owned()),
        (provider(json!({"env": [{"name": "A"}]})), "providers[0].env[0]: missing field `value`".to_owned()),
        (token(json!({"serviceAccountTokenAudience": ""})), "providers[0].tokenAttributes.serviceAccountTokenAudience: is required".to_owned()),
        (token(json!({"requireServiceAccount": null})), "providers[0].tokenAttributes.requireServiceAccount: is required".to_owned()),
        (token(json!({"cacheType": null})), "providers[0].tokenAttributes.cacheType: \"\" is not supported (ServiceAccount, Token)".to_owned()),
        (token(json!({"requireServiceAccount": false, "requiredServiceAccountAnnotationKeys": ["k"]})), "providers[0].tokenAttributes.requiredServiceAccountAnnotationKeys: requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set".to_owned()),
        (token(json!({"optionalServiceAccountAnnotationKeys": ["a", "a"]})), "providers[0].tokenAttributes.optionalServiceAccountAnnotationKeys[1]: \"a\" is given twice".to_owned()),
        (token(json!({"optionalServiceAccountAnnotationKeys": ["-a"]})), "providers[0].tokenAttributes.optionalServiceAccountAnnotationKeys[0]: \"-a\" cannot be the key of an annotation".to_owned()),
        (token(json!({"optionalServiceAccountAnnotationKeys": ["k"], "requiredServiceAccountAnnotationKeys": ["k"]})), "providers[0].tokenAttributes: \"k\": annotation keys cannot be both required and optional".to_owned()),
    ];
    for (provider, expected) in rows {
        assert_eq!(load_one(&config(json!([provider]))), Err(format!("/etc/c.yaml: {expected}")));
    }
    let mut old = token(json!({}));
    old["apiVersion"] = json!("credentialprovider.kubelet.k8s.io/v1beta1");
    let error = load_one(&config(json!([old]))).unwrap_err();
    assert_eq!(
        error,
        "/etc/c.yaml: providers[0].tokenAttributes: tokenAttributes is only supported for credentialprovider.kubelet.k8s.io/v1 API version"
    );
}

#[test]
fn files_that_are_no_configuration_are_refused() {
    for (text, error) in [
        ("", "is empty"),
        ("[]", "must be a mapping of field names to values"),
        ("{}", "kind: must be given (CredentialProviderConfig)"),
        ("kind: Pod", "kind: \"Pod\" is not what this file must be (CredentialProviderConfig)"),
        (
            "kind: CredentialProviderConfig\napiVersion: v1",
            "apiVersion: \"v1\" is not what this file must be (kubelet.config.k8s.io/v1, kubelet.config.k8s.io/v1beta1, kubelet.config.k8s.io/v1alpha1)",
        ),
        (
            "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1",
            "providers: at least 1 item in plugins is required",
        ),
    ] {
        assert_eq!(load_one(text), Err(format!("/etc/c.yaml: {error}")));
    }
    assert!(load_one("{ broken: [").unwrap_err().contains("is neither YAML nor JSON"));
}

#[test]
fn several_files_are_one_configuration_with_different_names() {
    let file = |name: &str, provider_name: &str| {
        (PathBuf::from(name), config(json!([provider(json!({"name": provider_name}))])))
    };
    let names = |r: Vec<Provider>| r.into_iter().map(|p| p.name).collect::<Vec<_>>();
    assert_eq!(names(load(&[file("a", "x"), file("b", "y")]).unwrap()), ["x", "y"]);
    let errors = load(&[file("a", "x"), file("b", "x")]).unwrap_err();
    assert_eq!(errors[0].to_string(), "b: providers[0].name: duplicate provider name \"x\"");
}

#[test]
fn a_folder_gives_its_configuration_files_in_order() {
    let names = ["b.yml", "a.json", "README", "c.yaml", "d.yaml.bak", ".hidden"].map(String::from).to_vec();
    assert_eq!(files_of_folder(names), ["a.json", "b.yml", "c.yaml"]);
}
