//! Descriptions of the clients that may use each listener, for the start messages and `foxy check`.

use std::net::SocketAddr;

use ipnet::IpNet;

/// Clients that may use one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Users {
    /// A sentence that describes the clients.
    pub(crate) words: String,
    /// True for a forward proxy that is open to the whole Internet.
    pub(crate) open_proxy: bool,
}

/// Returns the clients of a listener: the clients in `listed`, or all clients if there is no list.
pub(crate) fn users(what: &str, on: SocketAddr, listed: Option<&[IpNet]>, forward: bool) -> Users {
    let everybody = listed.is_none_or(|list| list.iter().any(|net| net.prefix_len() == 0));
    let local = on.ip().is_loopback();
    let who = match listed {
        _ if local && everybody => "clients on this machine".to_owned(),
        _ if everybody => "everybody".to_owned(),
        Some([]) => "nobody".to_owned(),
        Some(list) if local && list.iter().any(|net| net.contains(&on.ip())) => {
            "clients on this machine".to_owned()
        }
        Some(list) => {
            let list: Vec<_> = list.iter().map(ToString::to_string).collect();
            format!("clients of {}", list.join(", "))
        }
        None => String::new(),
    };
    let open_proxy = forward && everybody && !local;
    let warning = match open_proxy {
        true => ": it is an open proxy; access.allow_clients restricts it",
        false => "",
    };
    Users {
        words: format!("{what} on {on}: {who} may use it{warning}"),
        open_proxy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_report_their_permitted_clients() {
        let nets =
            |list: &[&str]| -> Vec<IpNet> { list.iter().map(|net| net.parse().unwrap()).collect() };
        let (home, all) = (nets(&["127.0.0.0/8", "10.0.0.0/8"]), nets(&["0.0.0.0/0"]));
        for (on, listed, forward, expected, open) in [
            (
                "127.0.0.1:1",
                Some(&home),
                true,
                "clients on this machine may use it",
                false,
            ),
            (
                "127.0.0.1:1",
                Some(&all),
                true,
                "clients on this machine may use it",
                false,
            ),
            (
                "0.0.0.0:1",
                Some(&home),
                true,
                "clients of 127.0.0.0/8, 10.0.0.0/8 may use it",
                false,
            ),
            (
                "0.0.0.0:1",
                Some(&all),
                true,
                "everybody may use it: it is an open proxy; access.allow_clients restricts it",
                true,
            ),
            ("0.0.0.0:1", None, false, "everybody may use it", false),
            (
                "0.0.0.0:1",
                Some(&nets(&[])),
                false,
                "nobody may use it",
                false,
            ),
            (
                "127.0.0.1:1",
                Some(&nets(&["10.0.0.0/8"])),
                false,
                "clients of 10.0.0.0/8 may use it",
                false,
            ),
        ] {
            let listed = listed.map(|list| &list[..]);
            let said = users("x", on.parse().unwrap(), listed, forward);
            assert_eq!(said.words, format!("x on {on}: {expected}"));
            assert_eq!(said.open_proxy, open);
        }
    }
}
