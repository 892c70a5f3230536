//! Trust anchors: which ClusterTrustBundles a projection takes, and what they are together.

use std::collections::{BTreeMap, BTreeSet};

use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::pem;

/// No selector is longer than this when it is written out.
const MAX_SELECTOR_LENGTH: usize = 100 * 1024;

/// A selector of labels that was looked through.
#[derive(Debug)]
pub struct Selector<'a> {
    /// `None`: takes nothing.
    terms: Option<Vec<Term<'a>>>,
}

#[derive(Debug)]
struct Term<'a> {
    key: &'a str,
    wants: Wants<'a>,
}

#[derive(Debug)]
enum Wants<'a> {
    In(&'a [String]),
    NotIn(&'a [String]),
    Exists,
    Absent,
}

impl<'a> Selector<'a> {
    /// Looks a selector through: none takes nothing, an empty one everything.
    ///
    /// # Errors
    /// Text of a kubelet: an operator is unknown, or all is too long.
    pub fn parse(selector: Option<&'a LabelSelector>) -> Result<Self, String> {
        let Some(selector) = selector else { return Ok(Self { terms: None }) };
        let labels = selector.match_labels.iter().flatten();
        let mut terms: Vec<Term<'a>> =
            labels.map(|(key, value)| Term { key, wants: Wants::In(std::slice::from_ref(value)) }).collect();
        for requirement in selector.match_expressions.iter().flatten() {
            terms.push(Term::parse(requirement).map_err(|e| format!("while parsing label selector: {e}"))?);
        }
        let length = terms.iter().map(Term::length).sum::<usize>() + terms.len().saturating_sub(1);
        if length > MAX_SELECTOR_LENGTH {
            return Err(format!("label selector length ({length}) is larger than {MAX_SELECTOR_LENGTH}"));
        }
        Ok(Self { terms: Some(terms) })
    }

    /// Whether an object with these labels is taken.
    #[must_use]
    pub fn takes(&self, labels: &BTreeMap<String, String>) -> bool {
        self.terms.as_ref().is_some_and(|terms| terms.iter().all(|t| t.takes(labels.get(t.key))))
    }
}

impl<'a> Term<'a> {
    fn parse(requirement: &'a LabelSelectorRequirement) -> Result<Self, String> {
        let values = requirement.values.as_deref().unwrap_or_default();
        let wants = match requirement.operator.as_str() {
            "In" => Wants::In(values),
            "NotIn" => Wants::NotIn(values),
            "Exists" => Wants::Exists,
            "DoesNotExist" => Wants::Absent,
            other => return Err(format!("{other:?} is not a valid label selector operator")),
        };
        Ok(Self { key: &requirement.key, wants })
    }

    fn takes(&self, value: Option<&String>) -> bool {
        match &self.wants {
            Wants::In(values) => value.is_some_and(|v| values.contains(v)),
            Wants::NotIn(values) => value.is_none_or(|v| !values.contains(v)),
            Wants::Exists => value.is_some(),
            Wants::Absent => value.is_none(),
        }
    }

    /// As it is written in a query: `key in (a,b)`.
    fn length(&self) -> usize {
        let list = |values: &[String]| values.iter().map(String::len).sum::<usize>() + values.len().saturating_sub(1);
        let rest = match &self.wants {
            Wants::In([one]) => "=".len() + one.len(),
            Wants::In(values) => " in ()".len() + list(values),
            Wants::NotIn(values) => " notin ()".len() + list(values),
            Wants::Exists => 0,
            Wants::Absent => "!".len(),
        };
        self.key.len() + rest
    }
}

/// The anchors of some bundles in one text, each once. Their order is that of their bytes; readers must not count on any.
pub fn normalised<'a>(bundles: impl IntoIterator<Item = &'a str>) -> String {
    let anchors: BTreeSet<Vec<u8>> = bundles.into_iter().flat_map(pem::blocks).collect();
    pem::certificates(&anchors)
}

#[cfg(test)]
mod tests;
