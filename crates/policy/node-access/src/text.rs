//! Bodies of refusals, to the letter.

use crate::{Attributes, Rules};

/// Body of 401.
pub const UNAUTHORIZED: &str = "Unauthorized";
/// Body of 405 where debugging handlers are switched off.
pub const DISABLED: &str = "Debug endpoints are disabled.";

/// Body of 403.
#[must_use]
pub fn forbidden(user: &str, attributes: &Attributes, rules: Rules) -> String {
    let verb = attributes.verb;
    let all = attributes.subresources.join(" ");
    match rules {
        Rules::FineGrained => {
            format!("Forbidden (user={user}, verb={verb}, resource=nodes, subresource(s)=[{all}])\n")
        }
        Rules::Legacy => format!("Forbidden (user={user}, verb={verb}, resource=nodes, subresource={all})"),
    }
}

/// Body of 500: the authorizer failed while it was asked about one sub-resource.
#[must_use]
pub fn authorization_error(user: &str, verb: &str, subresource: &str) -> String {
    format!("Authorization error (user={user}, verb={verb}, resource=nodes, subresource={subresource})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_those_of_the_book() {
        let pods = Attributes::of("GET", "pods", Rules::FineGrained);
        assert_eq!(
            forbidden("prom", &pods, Rules::FineGrained),
            "Forbidden (user=prom, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
        );
        let pods = Attributes::of("GET", "pods", Rules::Legacy);
        assert_eq!(
            forbidden("prom", &pods, Rules::Legacy),
            "Forbidden (user=prom, verb=get, resource=nodes, subresource=proxy)"
        );
        assert_eq!(
            authorization_error("prom", "get", "metrics"),
            "Authorization error (user=prom, verb=get, resource=nodes, subresource=metrics)"
        );
    }
}
