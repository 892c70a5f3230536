//! The serving certificate that no request is made for: configured files, or self-signed.

use std::path::Path;
use std::sync::Arc;

use actor::{Class, Ctx, chain};
use ports::host::HostFs;

use crate::actor::{CertificateManager, now_s};
use crate::config::ServingSource;
use crate::store::{self, StoredPair};

impl CertificateManager {
    /// Reads the configured files, or makes the self-signed pair.
    pub(crate) fn read_unrotated(&mut self, ctx: &mut Ctx<Self>) {
        let (source, dir) = (self.config.serving.clone(), self.config.cert_dir.clone());
        let is_unrotated = matches!(source, ServingSource::Files { .. } | ServingSource::SelfSigned { .. });
        // The self-signed pair is read once.
        let done = matches!(source, ServingSource::SelfSigned { .. }) && self.unrotated.pair.is_some();
        if !is_unrotated || done || self.unrotated.reading {
            return;
        }
        self.unrotated.reading = true;
        let (fs, effects, now) = (self.deps.fs.clone(), ctx.effects(), now_s(ctx));
        let work = async move {
            effects.hit("read serving files").await;
            effects.attempt(Class::HostFiles, move || read(&*fs, &source, &dir, now)).await
        };
        ctx.run(work, |act: &mut Self, found, ctx| {
            act.unrotated.reading = false;
            let error = match found {
                Ok(Ok(stored)) => {
                    act.unrotated.pair = Some(Arc::new(stored.pair));
                    None
                }
                Ok(Err(error)) => Some(error),
                Err(error) => Some(error.to_string()),
            };
            if let Some(error) = error.as_ref().filter(|e| act.unrotated.error.as_ref() != Some(*e)) {
                let kept = if act.unrotated.pair.is_some() { "; the former one stays in force" } else { "" };
                tracing::error!(error, "the serving certificate cannot be read{kept}");
            }
            act.unrotated.error = error;
            act.publish(now_s(ctx));
        });
    }
}

fn read(fs: &dyn HostFs, source: &ServingSource, dir: &Path, now_s: i64) -> Result<StoredPair, String> {
    match source {
        ServingSource::Files { certificate, key } => store::load_two(fs, certificate, key)
            .map_err(|e| chain(&e))?
            .ok_or_else(|| format!("{} or {} is not there", certificate.display(), key.display())),
        ServingSource::SelfSigned { hostname } => store::self_signed(fs, dir, hostname, now_s).map_err(|e| chain(&e)),
        ServingSource::Off | ServingSource::Rotate { .. } => Err("no files are configured".to_owned()),
    }
}
