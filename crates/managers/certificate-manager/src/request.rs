//! One certificate, from the key to the file. May be dropped at any moment; the next try goes on with the same key and the same
//! request.

use std::sync::Arc;
use std::time::Duration;

use actor::{Class, Clock, Effects};
use cert_rotation::template::bootstrap_request_name;
use cert_rotation::{Files, Template};
use futures::StreamExt;
use model::k8s_openapi::ByteString;
use model::k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use model::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ports::api::{ApiError, ApiExt, ApiServer, Followed, Kind, Object, Selection};
use ports::host::HostFs;

use crate::signing;
use crate::store::{self, Named, Pending, StoreError, StoredPair};

/// Why there is no new certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("certificate request refused by the API server")]
    Api(#[from] ApiError),
    #[error("certificate request {name} is {condition}: {message}")]
    Refused { name: String, condition: String, message: String },
    #[error("certificate request {0} was deleted")]
    Deleted(String),
    #[error("certificate request {0} was replaced by another")]
    Replaced(String),
    #[error("certificate request {name} was neither approved nor denied within {after:?}")]
    NotInTime { name: String, after: Duration },
    #[error("certificate request {0} belongs to somebody else")]
    Foreign(String),
    #[error("the certificate of {0} is of no use: {1}")]
    Unusable(String, String),
    #[error("the work was cut off")]
    CutOff,
}

impl RequestError {
    /// HTTP code of the server's refusal.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Api(error) => error.code(),
            _ => None,
        }
    }

    /// Whether the request itself is at its end, so that the next try needs a new key.
    fn is_final(&self) -> bool {
        !matches!(self, Self::Api(_) | Self::Store(_) | Self::CutOff)
    }
}

/// What is to be done.
pub(crate) struct Job {
    pub(crate) api: Arc<dyn ApiServer>,
    pub(crate) fs: Arc<dyn HostFs>,
    pub(crate) files: Files,
    pub(crate) template: Template,
    /// How long a request is followed.
    pub(crate) limit: Duration,
    /// The one request of a bootstrap without rotation: its name follows from its key.
    pub(crate) once: bool,
    pub(crate) clock: Clock,
    pub(crate) effects: Effects,
}

impl Job {
    fn now_s(&self) -> i64 {
        self.clock.unix_nanos().div_euclid(1_000_000_000)
    }

    /// Does something with files beside the actor.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn HostFs, &Files) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, RequestError> {
        let (fs, files) = (self.fs.clone(), self.files.clone());
        let done = self.effects.attempt(Class::HostFiles, move || work(&*fs, &files)).await;
        done.map_err(|_| RequestError::CutOff)?.map_err(RequestError::Store)
    }

    /// Key and request of a former life, or a new key.
    async fn prepare(&self) -> Result<Pending, RequestError> {
        let (template, once) = (self.template.fingerprint(), self.once);
        self.blocking(move |fs, files| {
            if once {
                let key_pem = store::bootstrap_key(fs, files)?;
                return Ok(Pending { key_pem, template, request: None });
            }
            if let Some(found) = store::load_pending(fs, files, &template) {
                return Ok(found);
            }
            let pending = Pending { key_pem: signing::new_key()?, template, request: None };
            store::save_pending(fs, files, &pending)?;
            Ok(pending)
        })
        .await
    }

    async fn create(&self, key_pem: &str) -> Result<Named, RequestError> {
        let mut metadata = ObjectMeta { generate_name: Some("csr-".to_owned()), ..ObjectMeta::default() };
        if self.once {
            let public = signing::public_key(key_pem).unwrap_or_default();
            let name = bootstrap_request_name(&public, &self.template);
            metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
        }
        let name = metadata.name.clone();
        let request = signing::request(key_pem, &self.template).map_err(StoreError::Making)?;
        let spec = CertificateSigningRequestSpec {
            request: ByteString(request.into_bytes()),
            signer_name: self.template.signer.to_owned(),
            usages: Some(self.template.usages.clone()),
            ..CertificateSigningRequestSpec::default()
        };
        let wanted = CertificateSigningRequest { metadata, spec, status: None };
        let made: CertificateSigningRequest = match (self.api.create(None, &wanted).await, name) {
            (Err(error), Some(name)) if error.is_already_exists() => {
                let found: CertificateSigningRequest = self.api.get(None, &name).await?;
                if found.spec.signer_name != wanted.spec.signer_name || found.spec.usages != wanted.spec.usages {
                    return Err(RequestError::Foreign(name));
                }
                found
            }
            (made, _) => made?,
        };
        Ok(Named { name: made.metadata.name.unwrap_or_default(), uid: made.metadata.uid, created_s: self.now_s() })
    }

    /// Waits for the certificate of a request.
    async fn follow(&self, request: &Named) -> Result<String, RequestError> {
        let selection = Selection {
            kind: Kind::CertificateSigningRequest,
            namespace: None,
            field_selector: format!("metadata.name={}", request.name),
        };
        let mut steps = self.api.follow(selection);
        while let Some(step) = steps.next().await {
            let seen = match step {
                Followed::All(all) => {
                    let of_name = all.into_iter().find_map(|o| named(o, &request.name));
                    // A list may come from before the request: only the server's own word counts.
                    match of_name {
                        None => match self.api.get::<CertificateSigningRequest>(None, &request.name).await {
                            Err(e) if e.is_not_found() => return Err(RequestError::Deleted(request.name.clone())),
                            Err(_) => None,
                            Ok(found) => Some(Arc::new(found)),
                        },
                        found => found,
                    }
                }
                Followed::Applied(object) => named(object, &request.name),
                Followed::Deleted(object) if named(object.clone(), &request.name).is_some() => {
                    return Err(RequestError::Deleted(request.name.clone()));
                }
                Followed::Deleted(_) => None,
                Followed::Failed(error) => {
                    tracing::debug!(%error, request = request.name, "the certificate request cannot be followed now");
                    None
                }
            };
            if let Some(seen) = seen
                && let Some(certificate) = verdict(&seen, request)?
            {
                return Ok(certificate);
            }
        }
        Err(RequestError::CutOff)
    }
}

fn named(object: Object, name: &str) -> Option<Arc<CertificateSigningRequest>> {
    match object {
        Object::CertificateSigningRequest(csr) if csr.metadata.name.as_deref() == Some(name) => Some(csr),
        _ => None,
    }
}

/// What a request says of itself: its certificate, a refusal, or nothing yet.
pub(crate) fn verdict(csr: &CertificateSigningRequest, request: &Named) -> Result<Option<String>, RequestError> {
    if request.uid.is_some() && csr.metadata.uid != request.uid {
        return Err(RequestError::Replaced(request.name.clone()));
    }
    let Some(status) = &csr.status else { return Ok(None) };
    let conditions = status.conditions.as_deref().unwrap_or_default();
    if let Some(refusal) = conditions.iter().find(|c| c.type_ == "Denied" || c.type_ == "Failed") {
        let reason = refusal.message.clone().or_else(|| refusal.reason.clone());
        return Err(RequestError::Refused {
            name: request.name.clone(),
            condition: refusal.type_.to_lowercase(),
            message: reason.unwrap_or_default(),
        });
    }
    let approved = conditions.iter().any(|c| c.type_ == "Approved");
    let certificate = status.certificate.as_ref().filter(|c| approved && !c.0.is_empty());
    Ok(certificate.map(|c| String::from_utf8_lossy(&c.0).into_owned()))
}

/// Gets a certificate and keeps it.
pub(crate) async fn obtain(job: Job) -> Result<StoredPair, RequestError> {
    let result = attempt(&job).await;
    if let Err(error) = &result
        && error.is_final()
    {
        job.blocking(store::forget_pending).await?;
    }
    result
}

async fn attempt(job: &Job) -> Result<StoredPair, RequestError> {
    job.effects.hit("key").await;
    let pending = job.prepare().await?;
    let request = match pending.request.clone() {
        Some(request) => request,
        None => {
            job.effects.hit("before create").await;
            let request = job.create(&pending.key_pem).await?;
            job.effects.hit("after create").await;
            if !job.once {
                let known = Pending { request: Some(request.clone()), ..pending.clone() };
                job.blocking(move |fs, files| store::save_pending(fs, files, &known)).await?;
            }
            request
        }
    };
    tracing::info!(request = request.name, signer = job.template.signer, "waiting for a certificate");
    let waited = u64::try_from(job.now_s().saturating_sub(request.created_s)).unwrap_or(0);
    let left = job.limit.saturating_sub(Duration::from_secs(waited));
    let late = || RequestError::NotInTime { name: request.name.clone(), after: job.limit };
    let certificate = tokio::time::timeout(left, job.follow(&request)).await.map_err(|_| late())??;
    let unusable = |why: String| RequestError::Unusable(request.name.clone(), why);
    let parts = cert_rotation::certificate::split(&certificate).map_err(|e| unusable(e.to_string()))?;
    let stored = store::stored_pair(parts.certificates, pending.key_pem, job.files.dir());
    let stored = stored.map_err(|e| unusable(actor::chain(&e)))?;
    if stored.facts.is_expired(job.now_s()) {
        return Err(unusable("it is expired".to_owned()));
    }
    if let Some(missing) = job.template.missing_in(&stored.facts) {
        tracing::warn!(request = request.name, missing, "the certificate says less than was asked for");
    }
    job.effects.hit("before store").await;
    let (pair, now_s) = (stored.pair.clone(), job.now_s());
    job.blocking(move |fs, files| {
        store::save(fs, files, &pair, now_s)?;
        store::forget_pending(fs, files)
    })
    .await?;
    Ok(stored)
}
