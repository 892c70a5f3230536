mod collecting;
mod credentials;
mod fake;
mod plugins;
mod requests;
