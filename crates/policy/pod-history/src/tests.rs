mod causes;
mod record;
mod timeline;
