//! Exact quantities as the API writes them.
