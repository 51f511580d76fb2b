//! Client of an endpoint for tests of accounts. Connects to an address, begins HTTP/2, and prints `answered` if the server
//! begins it as well, `closed` if the server closes the connection instead.
//!
//! Usage: `caller ADDRESS`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that only tests start; it panics at the first failure"
)]

use std::io::{Read, Write};
use std::net::TcpStream;

/// Preface of a client, and its empty SETTINGS frame (RFC 9113).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn main() {
    let address = std::env::args().nth(1).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    // The server may have closed the connection already.
    stream.write_all(PREFACE).unwrap_or_default();
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(0) | Err(_) => println!("closed"),
        Ok(_) => println!("answered"),
    }
}
