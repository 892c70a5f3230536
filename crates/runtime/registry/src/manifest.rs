//! Documents of an image.

use futures::FutureExt;
use hyper::Method;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use image_store::Digest;
use image_store::oci::{Descriptor, Document, media};

use crate::client::Ask;
use crate::endpoint::Endpoint;
use crate::error::{Failure, PullError};
use crate::fetch::Session;

/// Most bytes of a manifest or a configuration; containerd has the same bound.
pub(crate) const DOCUMENT: u64 = 4 << 20;
/// What a registry says that a manifest's digest is.
const CONTENT_DIGEST: &str = "docker-content-digest";

/// A document that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) digest: Digest,
    pub(crate) text: Vec<u8>,
    pub(crate) document: Document,
}

/// What is asked for: a tag, or content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Version {
    Tag(String),
    Content(Digest),
}

impl Version {
    fn path(&self) -> String {
        match self {
            Self::Tag(tag) => format!("manifests/{tag}"),
            Self::Content(digest) => format!("manifests/{digest}"),
        }
    }

    /// Only a host that may resolve says what a tag means.
    fn may(&self, endpoint: &Endpoint) -> bool {
        match self {
            Self::Tag(_) => endpoint.resolves,
            Self::Content(_) => endpoint.pulls,
        }
    }
}

impl Session {
    /// What a version is right now, without its content; `None`: the hosts do not say it so. It also shows that whoever asks may have it.
    pub(crate) async fn look(&self, version: &Version) -> Option<Digest> {
        let ask = Ask { method: Method::HEAD, ..manifest_ask().ok()? };
        for endpoint in self.endpoints.iter().filter(|e| version.may(e)) {
            let answer = self.call(endpoint, &version.path(), &ask).await;
            let Some(answer) = answer.ok().filter(|a| a.status().is_success()) else { continue };
            return match version {
                Version::Content(digest) => Some(*digest),
                Version::Tag(_) => answer.text(CONTENT_DIGEST).and_then(|d| d.parse().ok()),
            };
        }
        None
    }

    /// A manifest or index.
    pub(crate) async fn manifest<'s>(&'s self, version: &'s Version) -> Result<Fetched, PullError> {
        let attempt = |endpoint: &'s Endpoint| self.manifest_of(endpoint, version).boxed();
        let (digest, text, kind) = self.first(|e| version.may(e), "for its manifest", attempt).await?;
        let document = Document::parse(&text, &kind)?;
        Ok(Fetched { digest, text, document })
    }

    async fn manifest_of(&self, endpoint: &Endpoint, version: &Version) -> Result<(Digest, Vec<u8>, String), Failure> {
        let mut answer = self.call(endpoint, &version.path(), &manifest_ask()?).await?;
        if answer.status().as_u16() != 200 {
            return Err(answer.refusal().await);
        }
        let kind = answer.text(CONTENT_TYPE).unwrap_or_default().to_owned();
        let told = answer.text(CONTENT_DIGEST).and_then(|d| d.parse::<Digest>().ok());
        let text = answer.whole("its manifest", DOCUMENT).await?;
        let found = Digest::of(&text);
        let promised = match version {
            Version::Content(digest) => Some(*digest),
            Version::Tag(_) => told,
        };
        match promised.filter(|promised| *promised != found) {
            Some(promised) => Err(Failure::Digest { promised, found }),
            None => Ok((found, text, kind)),
        }
    }

    /// A small blob: a configuration.
    pub(crate) async fn small_blob<'s>(&'s self, described: &'s Descriptor) -> Result<Vec<u8>, PullError> {
        let attempt = |endpoint: &'s Endpoint| self.small_blob_of(endpoint, described).boxed();
        self.first(|e| e.pulls, "for its configuration", attempt).await
    }

    async fn small_blob_of(&self, endpoint: &Endpoint, described: &Descriptor) -> Result<Vec<u8>, Failure> {
        if described.size > DOCUMENT {
            return Err(Failure::TooLarge("its configuration", DOCUMENT));
        }
        let mut answer = self.call(endpoint, &format!("blobs/{}", described.digest), &Ask::get()).await?;
        if answer.status().as_u16() != 200 {
            return Err(answer.refusal().await);
        }
        let text = answer.whole("its configuration", described.size).await?;
        match Digest::of(&text) {
            found if found == described.digest => Ok(text),
            found => Err(Failure::Digest { promised: described.digest, found }),
        }
    }
}

fn manifest_ask() -> Result<Ask, Failure> {
    let mut ask = Ask::get();
    for kind in media::ACCEPT {
        ask = ask.with(ACCEPT, kind)?;
    }
    ask.with(ACCEPT, "*/*")
}
