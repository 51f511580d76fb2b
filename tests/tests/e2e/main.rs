//! Tests of the program as users run it: real processes and files, isolated from the machine.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod clouds;
mod components;
mod crash_points;
mod crashes;
mod imports;
mod installs;
mod life;
mod mistakes;
mod processes;
mod repository;
mod rude;
mod schemas;
mod secrecy;
mod signals;
mod stack_file;
mod stacks;
mod states;
mod surgery;
mod targets;
mod templates;
mod words;
