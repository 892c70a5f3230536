mod choice;
mod lines;
mod options;
mod printer;
mod properties;
mod rotation;
mod tail;
