mod bed;
mod refusals;
mod relaying;
mod tunnels;
mod websockets;
