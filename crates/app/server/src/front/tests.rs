mod access;
mod bed;
mod certificates;
mod hostile;
mod pki;
mod stop;
mod stream;
