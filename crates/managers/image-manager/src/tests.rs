mod fake;
mod requests;
