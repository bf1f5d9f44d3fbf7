//! Real clients through a real Foxy process: curl, git, apt, pip, npm, cargo, go, Maven and Chromium, each used as a
//! newcomer would use it. A tool that is not installed is named, with the command to get it.

mod apt;
mod browser;
mod ccache;
mod containers;
mod curl;
mod git;
mod https;
mod names;
pub(crate) mod process;
mod registries;
mod seeking;
mod squid;
mod stores;
mod tls;
mod web;
mod webm;
