//! Tests of the server over real sockets.
