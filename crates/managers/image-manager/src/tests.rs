mod collecting;
mod credentials;
mod fake;
mod files;
mod plugins;
mod requests;
