use rcgen::{CertificateParams, DnType, DnValue, KeyPair};

use super::*;

fn certificate(subject: &[(DnType, &str)]) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    for (kind, value) in subject {
        params.distinguished_name.push(kind.clone(), DnValue::Utf8String((*value).to_owned()));
    }
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

#[test]
fn a_certificate_names_user_and_groups() {
    let der = certificate(&[
        (DnType::OrganizationName, "system:masters"),
        (DnType::OrganizationalUnitName, "ignored"),
        (DnType::CommonName, "admin"),
    ]);
    let user = User::of_certificate(&der).unwrap();
    assert_eq!((user.name.as_str(), user.groups.as_slice()), ("admin", ["system:masters".to_owned()].as_slice()));
    assert_eq!(user.authenticated().groups, ["system:masters", "system:authenticated"]);
}

#[test]
fn a_certificate_without_a_name_is_nobody() {
    assert_eq!(User::of_certificate(&certificate(&[(DnType::OrganizationName, "g")])), Err(BadSubject::NoName));
    assert_eq!(User::of_certificate(&certificate(&[(DnType::CommonName, "")])), Err(BadSubject::NoName));
    assert!(matches!(User::of_certificate(b"garbage"), Err(BadSubject::Unreadable(_))));
}

#[test]
fn authenticated_is_added_once_and_never_to_nobody() {
    assert_eq!(User::anonymous().authenticated(), User::anonymous());
    let user = User { name: "u".to_owned(), ..User::default() }.authenticated();
    assert_eq!(user.groups, ["system:authenticated"]);
    assert_eq!(user.clone().authenticated(), user);
}
