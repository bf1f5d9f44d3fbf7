//! The series of configurations that Foxy loads one after the other while it is under load. Each
//! configuration differs from the previous one.

use std::fmt::Write;

use foxy_base::Rng;

/// Number of sites beside the main site. They are added and removed during the run.
pub(super) const SIDES: usize = 3;

/// Ports of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) admin: u16,
    /// Port of the main site, which gets the load. This site always exists.
    pub(super) main: u16,
    pub(super) forward: u16,
    pub(super) sides: [u16; SIDES],
    /// Port of the origin for the load.
    pub(super) pages: u16,
    /// Port of the origin for the downloads.
    pub(super) long: u16,
}

/// The current settings.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    ports: Ports,
    store: String,
    /// A number that every answer of the main site contains in a field. An answer with a new number shows
    /// that the new settings apply.
    pub(super) mark: u64,
    idle: u64,
    rule: u64,
    connections: u64,
    sides: [bool; SIDES],
    side_closed: bool,
    compressed: bool,
    forward: bool,
    debug: bool,
}

/// Number of kinds of change.
const KINDS: u64 = 9;

impl Settings {
    /// Initial settings, with all listeners.
    pub(super) fn new(ports: Ports, store: String) -> Self {
        Self {
            ports,
            store,
            mark: 0,
            idle: 100,
            rule: 10,
            connections: 8000,
            sides: [true; SIDES],
            side_closed: false,
            compressed: false,
            forward: true,
            debug: false,
        }
    }

    /// Changes one to three settings, and repeats this until the file differs. A change may leave the file
    /// unchanged, because settings of side sites are not in the file while all side sites are absent.
    pub(super) fn change(&mut self, rng: &mut Rng) {
        let before = self.text();
        while self.text() == before {
            self.change_some(rng);
        }
    }

    fn change_some(&mut self, rng: &mut Rng) {
        let first = rng.below(KINDS);
        for number in 0..1 + rng.below(3) {
            match (first + number) % KINDS {
                0 => self.mark += 1,
                1 => self.idle += 1,
                2 => self.rule += 1,
                3 => self.connections += 1,
                4 => {
                    let side = &mut self.sides[rng.below(SIDES as u64) as usize];
                    *side = !*side;
                }
                5 => self.side_closed = !self.side_closed,
                6 => self.compressed = !self.compressed,
                7 => self.forward = !self.forward,
                _ => self.debug = !self.debug,
            }
        }
    }

    /// The text of the configuration file.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.head(&mut text);
        self.sites(&mut text);
        text
    }

    fn head(&self, text: &mut String) {
        let Ports { admin, forward, .. } = self.ports;
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "admin = \"127.0.0.1:{admin}\"\nworkers = 2\nmemory = \"256MiB\"\n{}\
             [[store]]\npath = \"{}\"\nsize = \"256MiB\"\n[timeouts]\nidle = \"{}s\"\n\
             [limits]\nconnections = {}\n[log]\nlevel = \"{}\"\n\
             [[rule]]\npath = \"/elsewhere\"\nttl_max = \"{}s\"\n",
            match self.forward {
                true => format!("listen = \"127.0.0.1:{forward}\"\n"),
                false => String::new(),
            },
            self.store,
            self.idle,
            self.connections,
            if self.debug { "warn" } else { "info" },
            self.rule,
        );
    }

    fn sites(&self, text: &mut String) {
        let Ports {
            main,
            sides,
            pages,
            long,
            ..
        } = self.ports;
        let _ = write!(
            text,
            "[[site]]\nname = \"main\"\nlisten = \"127.0.0.1:{main}\"\n\
             origin = \"http://127.0.0.1:{pages}\"\nresponse_headers = [\"set X-Mark: {}\"]\n",
            self.mark
        );
        for (number, port) in sides.iter().enumerate() {
            if !self.sides[number] {
                continue;
            }
            let _ = write!(
                text,
                "[[site]]\nname = \"side-{number}\"\nlisten = \"127.0.0.1:{port}\"\n\
                 origin = \"http://127.0.0.1:{long}\"\n"
            );
            if self.side_closed {
                text.push_str("allow_clients = [\"192.0.2.0/24\"]\n");
            }
            if self.compressed {
                text.push_str("compress = [\"gzip\"]\n");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_differs_from_the_one_before_and_follows_from_the_seed() {
        let ports = Ports {
            admin: 1,
            main: 2,
            forward: 3,
            sides: [4, 5, 6],
            pages: 7,
            long: 8,
        };
        let all = |seed| {
            let (mut rng, mut settings) = (
                Rng::new(seed).fork("reloads"),
                Settings::new(ports, "s".to_owned()),
            );
            let mut texts = vec![settings.text()];
            for _ in 0..200 {
                settings.change(&mut rng);
                texts.push(settings.text());
            }
            texts
        };
        for seed in 1..20 {
            let texts = all(seed);
            assert!(texts.windows(2).all(|two| two[0] != two[1]));
            assert_eq!(texts, all(seed));
        }
        assert_ne!(all(1), all(2));
    }
}
