//! The credential provider plugins that the flags name (`--image-credential-provider-config`, `-bin-dir`).

use std::path::{Path, PathBuf};

use node_config::Flags;
use pull_credentials::provider_config::{self, ConfigError, Provider};

/// Reads the configuration, a file or a folder of files, and looks for each plugin. Empty: none are configured.
///
/// # Errors
/// Everything that is wrong, file by file: unreadable, malformed, a plugin that is not there.
pub fn load(flags: &Flags) -> Result<Vec<Provider>, Vec<ConfigError>> {
    let (Some(config), Some(programs)) =
        (&flags.image_credential_provider_config, &flags.image_credential_provider_bin_dir)
    else {
        return Ok(Vec::new());
    };
    let files = read(config).map_err(|e| vec![e])?;
    let providers = provider_config::load(&files)?;
    let missing: Vec<ConfigError> = providers
        .iter()
        .filter(|p| !programs.join(&p.name).is_file())
        .map(|p| {
            let reason = format!("plugin {:?} is not in {}", p.name, programs.display());
            ConfigError { file: config.clone(), key: "providers.name".to_owned(), reason }
        })
        .collect();
    if missing.is_empty() { Ok(providers) } else { Err(missing) }
}

fn read(config: &Path) -> Result<Vec<(PathBuf, String)>, ConfigError> {
    let refuse = |file: &Path, e: &dyn std::fmt::Display| ConfigError {
        file: file.to_owned(),
        key: String::new(),
        reason: format!("cannot be read: {e}"),
    };
    let text = |file: PathBuf| match std::fs::read_to_string(&file) {
        Ok(text) => Ok((file, text)),
        Err(e) => Err(refuse(&file, &e)),
    };
    if !config.is_dir() {
        return text(config.to_owned()).map(|file| vec![file]);
    }
    let entries = std::fs::read_dir(config).map_err(|e| refuse(config, &e))?;
    let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    let files = provider_config::files_of_folder(names);
    if files.is_empty() {
        return Err(refuse(config, &"no file in it ends with .yaml, .yml or .json"));
    }
    files.into_iter().map(|name| text(config.join(name))).collect()
}
