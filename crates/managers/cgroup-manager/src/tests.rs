mod fake;
mod life;
mod tables;
