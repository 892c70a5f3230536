mod connections;
mod frames;
