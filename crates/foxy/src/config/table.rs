//! Every setting there is, in one table: it feeds reading, messages, defaults and the reference.

use super::build::MEMORY_MIN;
use super::kind::Kind::{self, *};
use super::pattern::Of;
use super::rewriting;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Section in the file; empty for the top. `store` and `site` may be given several times.
    pub section: &'static str,
    /// Its name inside the section.
    pub name: &'static str,
    /// The kind of value that it accepts.
    pub kind: Kind,
    /// The default as a user would write it (entries of a list separated by spaces), or `None` if
    /// it depends on the machine or there is none.
    pub default: Option<&'static str>,
    /// In words, what applies when there is no default text.
    pub otherwise: &'static str,
    /// One or two sentences on what it does.
    pub about: &'static str,
}

const fn fixed(
    section: &'static str,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Setting {
    Setting {
        section,
        name,
        kind,
        default: Some(default),
        otherwise: "",
        about,
    }
}

const fn free(
    section: &'static str,
    name: &'static str,
    kind: Kind,
    otherwise: &'static str,
    about: &'static str,
) -> Setting {
    Setting {
        section,
        name,
        kind,
        default: None,
        otherwise,
        about,
    }
}

const DAY: u64 = 86_400;
const YEAR: u64 = 365 * DAY;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Sections that may be given several times, as `[[section]]`.
pub(super) const REPEATED: [&str; 3] = ["store", "site", "rule"];

const PROXY_PROTOCOL: &str = "Connections of `access.trusted_proxies` to these listeners begin with a header of the PROXY protocol, version 1 or 2, and the client that it names is the one that access lists, limits and logs mean. Without such a header they get 400 (over TLS they are closed). From other peers it is no header, but a bad request.";

const FORWARDED: Kind = Word(&["transparent", "append", "replace", "remove"]);

/// The table, in the order of the reference.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    free("", "include", Files, "none",
        "Further files, read after this one in the order of their names: \"conf.d/*.toml\". Paths are relative to the folder of this file. Their sites, rules and stores are added; a setting that is given twice is refused. A list without `*` names files that must be there."),
    fixed("", "listen", Addresses, "127.0.0.1:3128",
        "Where the forward proxy listens. With addresses other than loopback, private and loopback destinations are refused unless `access.allow_destinations` names them."),
    free("", "listen_tls", Addresses, "nowhere",
        "Where the forward proxy listens for clients that speak TLS to it (`https_proxy=https://...`), with the certificates of `[tls]`. Given alone, it takes the place of `listen`."),
    fixed("", "proxy_protocol", Flag, "false", PROXY_PROTOCOL),
    fixed("", "admin", AddressOrOff, "127.0.0.1:3129",
        "Where health, metrics, statistics and purging are served. Keep it on loopback or a management network."),
    free("", "memory", SizeOrShare(MEMORY_MIN), "the smaller of 512MiB and 25% of the machine's memory, or 70% of a container's; at least 48MiB",
        "The one memory budget: the program itself (28 MiB), RAM tier, index, buffers, fills, connections and their queues in the kernel. When it is spent, the RAM tier shrinks, buffers become small, idle connections are closed, one client has a quarter of the connections at most, and new work waits or gets 503."),
    free("", "workers", Count(1, 1024), "the number of usable cores",
        "Network threads. Each accepts, serves and reads on its own."),
    fixed("", "pin_workers", Flag, "false",
        "Bind each network thread to a core of its own. Useful on machines that run nothing else."),

    free("store", "path", Path, "`store` in the state directory: that of the service (`STATE_DIRECTORY`), else `foxy` in the user's cache directory, else `/var/lib/foxy`",
        "A file (made if absent, in a folder that exists) or a block device. Its contents survive restarts. Foxy serves without a store that is missing, cut short or cannot be read, unless it is started with `--strict`."),
    free("store", "size", SizeOrShare(16 * MIB), "the size of an existing store; else the smaller of 10GiB and 10% of the free space",
        "How much of the disk is used. A share counts the free space and what the store already has."),
    fixed("store", "reads", Word(&["auto", "sorted", "direct"]), "auto",
        "In which order reads go to the disk. `sorted`: those that come while the disk is at work go out together, by position, neighbours as one: for rotating disks. `direct`: each at once. `auto`: `sorted` if the first reads show that the disk rotates (what the system says of a disk is often wrong)."),

    free("tls", "certificate", Path, "none", CERTIFICATE),
    free("tls", "key", Path, "none", KEY),
    free("tls", "certificates", Path, "none", CERTIFICATES),
    free("tls", "default_certificate", HostName, "none: such clients are refused", DEFAULT_CERTIFICATE),
    free("tls", "client_ca", Path, "clients are not asked for certificates", CLIENT_CA),
    fixed("tls", "client_certificate", CLIENT_CERTIFICATE, "require", CLIENT_CERTIFICATE_ABOUT),

    fixed("admission", "write_budget", Size(0, 1 << 50), "0",
        "Bytes per second of new contents that are written to all stores together, on average; what was not used for up to ten seconds may be used later, so that longer objects than ten seconds' worth do not enter. 0 sets no limit. For disks that wear out, or that others need as well."),
    fixed("admission", "when_spent", Word(&["second-use", "frequency", "anything"]), "second-use",
        "What is still written when the budget is spent, on the quarter of it that is kept for this: `second-use`: what was asked for before; `frequency`: what was asked for three times lately; `anything`: whatever comes first."),
    free("admission", "max_size", Size(1, 1 << 50), "no limit",
        "Larger objects are not written when the budget is spent."),

    fixed("scrub", "rate", Size(0, 16 * GIB), "2MiB",
        "Bytes per second that are read to find records that have gone bad; a quarter of it while requests read from disks. 0 turns it off."),
    fixed("scrub", "every", Duration(60, YEAR), "7d",
        "From the beginning of one pass over everything to that of the next. The first begins at the start."),

    free("site", "name", Name, "host and port of the origin",
        "Names the site in logs and keeps its objects apart from all others."),
    free("site", "listen", Addresses, "required, unless there is `listen_tls`",
        "Where this reverse proxy listens."),
    free("site", "listen_tls", Addresses, "nowhere",
        "Where it listens for clients that speak TLS. A request for a host that is not on the connection's certificate gets 421."),
    fixed("site", "proxy_protocol", Flag, "false", PROXY_PROTOCOL),
    free("site", "hosts", SiteHosts, "every host; required where sites share an address",
        "Hosts that the site answers for, without port. `*.` at the front stands for one label, `*` alone for every host that no other site has. Several sites may share an address if each says its hosts; a request for a host of none of them gets 421 over TLS, else 404."),
    free("site", "paths", UrlPaths, "all paths",
        "Beginnings of paths that the site answers for, cut at `/`; among the sites of a host the longest decides. Where sites of one host differ by path, paths with a segment `.` or `..` get 400. This chooses an origin: it is no protection of an origin that reads paths in another way."),
    free("site", "certificate", Path, "those of `[tls]`", CERTIFICATE),
    free("site", "key", Path, "none", KEY),
    free("site", "certificates", Path, "those of `[tls]`", CERTIFICATES),
    free("site", "default_certificate", HostName, "none: such clients are refused", DEFAULT_CERTIFICATE),
    free("site", "client_ca", Path, "as the certificates say: those of `[tls]`, or none", CLIENT_CA),
    fixed("site", "client_certificate", CLIENT_CERTIFICATE, "require", CLIENT_CERTIFICATE_ABOUT),
    free("site", "allow_client_names", Patterns(Of::ClientName), "everybody",
        "Certificates that may use the site, by subject (such as \"CN=node 1, O=Example\") or by an alternative name (host, address of mail, URI), `*` standing for anything; others get 403."),
    free("site", "origin", Origins, "required",
        "Who is asked for what is not cached: one server or a list, such as [\"http://10.0.0.1:8080\", \"http://10.0.0.2:8080 weight=2 connections=50\"]. `connections` are requests that may be under way there. All are asked for the same host: that of the first, or the client's with `preserve_host`. With `https://` certificates are always checked."),
    fixed("site", "balance", Word(&["least_outstanding", "round_robin", "hash"]), "least_outstanding",
        "Which of several origins is asked. `least_outstanding`: of two that are drawn by weight, the one with fewer requests under way; `round_robin`: in turn, by weight; `hash`: the same URL always the same one, for origins that are caches."),
    fixed("site", "eject_after", Count(0, 1000), "5",
        "Errors in a row (no answer, or 5xx) after which an origin is left out for `eject_for`. 0: never. One that answers well always stays; if all fail alike, all stay. GET and HEAD are sent to another origin after an error, up to 20% of the site's requests and 100 more."),
    fixed("site", "eject_for", Duration(1, DAY), "10s",
        "How long an origin is left out the first time. Each further time it is twice as long, up to 5m or this value."),
    fixed("site", "slow_start", Duration(0, DAY), "30s",
        "From the return of an origin to its full share of requests; it begins with a tenth."),
    free("site", "check", RequestPath, "no checks",
        "Path that each origin is asked for by Foxy itself. Three wrong answers in a row take it out, two right ones bring it back."),
    fixed("site", "check_every", Duration(1, DAY), "5s",
        "From one check of an origin to the next. An answer may take as long, at most 5s."),
    fixed("site", "check_status", Count(200, 599), "200",
        "The status of an origin that is well."),
    free("site", "origin_ca", Path, "the authorities that the system trusts",
        "PEM file with the only authorities whose certificates the origin may have. The origin's certificate must be issued by one of them: a certificate that is its own authority is refused."),
    free("site", "origin_name", HostName, "the host of `origin`",
        "The name that the origin is asked for in the TLS handshake, and that its certificate must have."),
    free("site", "origin_certificate", Path, "none",
        "PEM file with the certificate that Foxy shows to the origin, and those that lead to its authority."),
    free("site", "origin_key", Path, "none",
        "PEM file with the key of `origin_certificate`."),
    fixed("site", "redirect_to_https", Word(&["off", "301", "308"]), "off",
        "Answers requests that came without TLS by a redirect to the same URL with https, at the port of `listen_tls` (else 443). With 308 the method stays. `Strict-Transport-Security` is not added."),
    fixed("site", "maintenance", Word(&["off", "origin", "all"]), "off",
        "`origin`: the origins are not asked; what is stored is answered as if they were unreachable, everything else with 503. `all`: every request gets 503."),
    fixed("site", "retry_after", Duration(1, 30 * DAY), "5m",
        "What clients are told to wait during maintenance (`Retry-After`)."),
    free("site", "error_pages", ErrorPages, "Foxy's own pages",
        "Pages for answers that Foxy makes itself, such as [\"502 /etc/foxy/502.html\", \"503 /etc/foxy/503.html\"]: .html, .json or .txt files of at most 256KiB, read at the start. Error pages of origins pass unchanged."),
    free("site", "request_headers", Rewrites(rewriting::Of::Requests), "none",
        "Changes of the fields of requests to the origin, in this order, such as [\"set X-Client: {client_ip}\", \"add X-Tag: a\", \"remove X-Debug\", \"rename X-Old X-New\"]. Variables are {client_ip}, {scheme}, {host}, {path}, {query}, {site} and {request_id}; `{{` is a brace. `Vary` selects by the changed request. Fields of the connection, of framing and of Foxy's own checks cannot be changed, and `Authorization` and `Cookie` get fixed texts only."),
    free("site", "response_headers", Rewrites(rewriting::Of::Answers), "none",
        "Changes of the fields of final answers on their way to clients, Foxy's own pages included. Also {cache_status} is known. What is stored is the origin's answer, so a change holds at once for everything."),
    free("site", "rewrite", Rewrites(rewriting::Of::Paths), "the client's path",
        "Paths at the origin; the first entry that fits the path decides: [\"prefix /shop /\", \"regex ^/u/([0-9]+)$ /user?id={1}\"]. A prefix ends at a `/`, and what follows it stays. The query stays, unless the new path has one (where {query} is the client's). Keys, `[[rule]]`, purges and `foxy why` use the client's URL. Paths with a segment `.` or `..` get 400."),
    free("site", "redirects", Rewrites(rewriting::Of::Redirects), "none",
        "URLs that clients are sent elsewhere for, before the cache is asked: [\"301 prefix /old /new\", \"308 regex ^/(.*)$ https://www.example.com/{1}\"]. The variables of `request_headers` and captures are known. `PURGE` is not redirected."),
    fixed("site", "compress", Words(&["br", "gzip"]), "",
        "Codings that stored answers are compressed by, the preferred one first, such as [\"br\", \"gzip\"]. The first client that asks for a form gets the plain answer while the form is made; each form is made once for each version and stored. Text, scripts, JSON, XML, SVG, fonts and the like with status 200 and no coding of their own, up to a fragment (about 250KiB), get `Vary: Accept-Encoding`, and compressed forms a weak `ETag`. Never ranges, `no-transform`, answers with `Set-Cookie` or `private` or chosen by cookies, or requests with `Authorization`; with `Cookie` only style sheets, scripts, images and fonts (BREACH)."),
    fixed("site", "compress_min_size", Size(1, MIB), "1KiB",
        "Shorter answers stay plain."),
    free("site", "connect_timeout", Duration(1, DAY), "as `timeouts.connect`",
        "To resolve and connect to an origin of this site."),
    free("site", "first_byte_timeout", Duration(1, DAY), "as `timeouts.first_byte`",
        "From the end of a request to the first byte of an answer, for this site."),
    free("site", "progress_timeout", Duration(1, DAY), "as `timeouts.upstream_progress`",
        "Without any progress while a body comes from or goes to an origin of this site."),
    fixed("site", "preserve_host", Flag, "false",
        "Send the origin the `Host` of the client instead of its own name."),
    fixed("site", "collapse", Word(&["fresh", "arrived"]), "fresh",
        "Which requests that wait for a running fetch take its answer. `fresh`: those for which it is fresh when it arrives; each of the others has the origin validate it. `arrived`: also those for which it was fresh when they arrived, which spares an origin that answers more slowly than its answers expire. This applies only to requests without `Cookie`, `Authorization` and cache directives, and to answers with an explicit lifetime and no directive that requires validation."),
    free("site", "obey_request", Flag, "as in `[cache]`",
        "Obey `Cache-Control` and `Pragma` of requests to this site. Any client can then force a request to the origin every time."),
    free("site", "normalise", Flag, "as in `[cache]`",
        "As `cache.normalise`, for this site. Switch it off for an origin that tells `%7E` and `~` in a path apart."),
    free("site", "allow_clients", Networks, "everybody",
        "Clients that may use the site; others get 403."),

    fixed("log", "access", LogTarget, "off",
        "Where finished requests are logged. SIGUSR1 and SIGHUP open the file anew, for log rotation."),
    fixed("log", "format", Word(&["squid", "combined", "json"]), "squid",
        "`squid`: Squid's native format; `combined`: as Apache; `json`: one object per line with every detail."),
    fixed("log", "query_strings", Flag, "false",
        "Log the queries of URLs and referrers, which often contain names or keys. If off, only the `?` is logged, as Squid does. Logs for `foxy sim size` need it where queries tell objects apart."),
    fixed("log", "level", Word(&["error", "warn", "info", "debug"]), "info",
        "How much Foxy says about itself on standard error. The variable FOXY_LOG refines it per module."),

    fixed("access", "allow_clients", Networks, "127.0.0.0/8 ::1/128 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 169.254.0.0/16 fc00::/7 fe80::/10",
        "Clients that may use the forward proxy; others get 403. \"all\" makes it an open proxy, which attracts abuse. Each site has its own list."),
    fixed("access", "trusted_proxies", Networks, "",
        "Proxies in front of Foxy. The client of their requests is the last address in `X-Forwarded-For` (without that field: in `Forwarded`) that is not one of theirs; it is the one that `allow_clients`, `purge_from`, limits and logs mean. They must set or remove these fields themselves. From other peers the fields prove nothing, and sites do not pass them on."),
    fixed("access", "ports", PortRanges, "80 443 1025-65535 21 70 210 280 488 591 777",
        "Ports that plain requests of the forward proxy may reach, so that it relays no mail. The list is Squid's. Origins of sites are exempt."),
    fixed("access", "connect_ports", Ports, "443",
        "Ports that `CONNECT` tunnels may reach."),
    fixed("access", "purge_from", Networks, "127.0.0.0/8 ::1/128",
        "Clients that may use the `PURGE` method, for the request's own URL. Requests sent by a page in a browser or by an untrusted proxy are refused. Requests with the admin token may purge everything, from anywhere."),
    fixed("access", "purge_rate", Count(1, 1_000_000), "50",
        "`PURGE` requests of one client per second, with bursts of ten seconds' worth; four times as many for all clients together. More get 429. Requests with the admin token or to the admin address are not limited."),
    fixed("access", "allow_destinations", Networks, "",
        "Destinations the forward proxy may reach although they are private, loopback or addresses of its own machine; \"all\" lifts the guard. Link-local addresses and other cloud metadata stay closed unless a network in this list other than \"all\" has them; Foxy's own listeners and its admin address always do."),
    free("access", "admin_token_file", Path, "`admin-token` in the state directory (see `store.path`)",
        "File with the admin token. If it is missing, it is created with a random token (mode 0600), except that the default file is not created if the admin address is on loopback and there is no state directory yet. If the admin address is not on loopback, all requests but `/healthz` and `/readyz` need the token: `Authorization: Bearer TOKEN` or `X-Foxy-Token: TOKEN`. `foxy purge` and the like send it."),
    fixed("access", "admin_hosts", HostNames, "",
        "Further `Host` names under which the admin address answers; loopback names and its own address always do."),

    fixed("limits", "connections", Count(1, 10_000_000), "16384",
        "Client connections over all workers. For a new one beyond that the oldest idle one is closed. At most half of the files that the system lets the process open."),
    fixed("limits", "client_connections", Count(1, 10_000_000), "4096",
        "Connections of one client address (IPv6: of one /64 network); more are closed at once. Trusted proxies have no such limit."),
    fixed("limits", "head", Size(KIB, MIB), "64KiB",
        "Bytes of a request or response head. An answer with a single field of more than 65,535 bytes is passed on and not stored."),
    fixed("limits", "fields", Count(10, 128), "100",
        "Fields in a head."),

    fixed("timeouts", "head", Duration(1, DAY), "15s",
        "From the first byte of a request head to its end."),
    fixed("timeouts", "idle", Duration(1, DAY), "75s",
        "Between two requests on one client connection."),
    fixed("timeouts", "progress", Duration(1, DAY), "60s",
        "Without any progress while a body goes to or comes from a client."),
    fixed("timeouts", "connect", Duration(1, DAY), "10s",
        "To resolve a name and connect to an origin, all its addresses and the TLS handshake together."),
    fixed("timeouts", "first_byte", Duration(1, DAY), "60s",
        "From the end of a request to the first byte of the origin's answer."),
    fixed("timeouts", "upstream_progress", Duration(1, DAY), "60s",
        "Without any progress while a body comes from or goes to an origin."),
    fixed("timeouts", "tunnel", Duration(1, 30 * DAY), "10m",
        "Without any byte in either direction of a tunnel."),
    fixed("timeouts", "drain", Duration(0, DAY), "20s",
        "From SIGTERM until unfinished requests are cut off."),

    fixed("upstream", "idle", Duration(0, DAY), "30s",
        "How long an unused connection to an origin is kept."),
    fixed("upstream", "age", Duration(0, 30 * DAY), "10m",
        "How old such a connection may become before it is not used again."),
    fixed("upstream", "idle_per_destination", Count(0, 100_000), "32",
        "Unused connections kept per destination and worker."),
    fixed("upstream", "idle_total", Count(0, 1_000_000), "1024",
        "Unused connections kept per worker."),
    fixed("upstream", "name_servers", NameServers, "",
        "Name servers to ask for origins' addresses; by default those of the system (`/etc/resolv.conf`)."),
    fixed("upstream", "origin_concurrency", Count(1, 1_000_000), "256",
        "Fetches that may wait for answer heads from one origin at the same time. Downloads under way do not count. One client has at most three quarters of them."),
    fixed("upstream", "origin_queue", Count(0, 10_000_000), "4096",
        "Requests that may queue for such a fetch; more are answered with 503."),
    fixed("upstream", "dns_names", Count(1, 10_000_000), "10000",
        "Names in the DNS cache."),

    fixed("fill", "window", Size(64 * KIB, GIB), "1MiB",
        "Bytes of a running fetch kept for its followers when the whole object is not kept."),
    fixed("fill", "lag", Duration(0, DAY), "2s",
        "How long a slow follower may hold the others back before it goes on alone."),
    fixed("fill", "finish_remaining", Size(0, GIB), "1MiB",
        "A fetch that all clients have left goes on if at most this much is missing ..."),
    fixed("fill", "finish_percent", Count(0, 100), "90",
        "... or if at least this many percent of it are there."),

    fixed("headers", "name", Name, "foxy",
        "Foxy's name in `Via` and `Cache-Status`."),
    free("headers", "x_forwarded_for", FORWARDED, "`append` for the forward proxy and for requests of trusted proxies; `replace` for other requests to a site",
        "What happens to `X-Forwarded-For`."),
    free("headers", "forwarded", FORWARDED, "`transparent` for the forward proxy and for requests of trusted proxies; `remove` for other requests to a site",
        "What happens to `Forwarded` (RFC 7239)."),
    fixed("headers", "cache_status", Flag, "true",
        "Whether answers carry `Cache-Status` (RFC 9211), which says what the cache did and why."),

    fixed("cache", "targeted_fields", FieldNames, "Foxy-Cache-Control CDN-Cache-Control",
        "Fields that take the place of `Cache-Control` for Foxy (RFC 9213), the most specific first."),
    fixed("cache", "surrogate_control", Flag, "false",
        "Obey the legacy field `Surrogate-Control`."),
    fixed("cache", "heuristic_percent", Count(0, 100), "10",
        "Lifetime of answers without one, in percent of the time since `Last-Modified`; 0 turns this off. Never for requests with `Authorization`; for requests with `Cookie` only if the answer is an image, font, sound, video, style sheet or script."),
    fixed("cache", "heuristic_max", Duration(0, YEAR), "7d",
        "Upper bound of such a lifetime."),
    fixed("cache", "default_ttl", DurationOrOff(0, YEAR), "off",
        "Lifetime of cacheable answers without any freshness information. Unlike the guess by `heuristic_percent`, it applies to requests with cookies as well: set it only if such answers are the same for all users."),
    fixed("cache", "negative_ttl", DurationOrOff(0, YEAR), "off",
        "Lifetime of 404, 405, 410, 414 and 501 that say nothing."),
    fixed("cache", "server_error_ttl", DurationOrOff(0, YEAR), "off",
        "Lifetime of 500, 502, 503 and 504 that say nothing."),
    fixed("cache", "ttl_min", DurationOrOff(0, YEAR), "off",
        "Shorter lifetimes are raised to this (never those of `no-store` or `private`, nor those of errors: 4xx and 5xx)."),
    fixed("cache", "ttl_max", DurationOrOff(0, YEAR), "off",
        "Longer lifetimes are lowered to this."),
    fixed("cache", "stale_on_disconnect", Duration(0, YEAR), "1d",
        "How long past its life an answer may be served while its origin cannot be reached, unless it forbids that."),
    fixed("cache", "stale_if_error", DurationOrOff(0, YEAR), "off",
        "`stale-if-error` of answers that do not say (RFC 5861)."),
    fixed("cache", "stale_while_revalidate", DurationOrOff(0, YEAR), "off",
        "`stale-while-revalidate` of answers that do not say (RFC 5861)."),
    fixed("cache", "normalise", Flag, "true",
        "Use one normal form of paths in keys, rules, purges and requests to the origin (RFC 3986): `%7Euser` is `~user`, `%c3` is `%C3`. No segment becomes `.` or `..`, and queries stay as they are."),
    free("cache", "min_size", Size(0, 1 << 50), "`0`",
        "Smaller answers are not stored."),
    free("cache", "max_size", Size(0, 1 << 50), "no limit",
        "Larger answers are not stored."),
    free("cache", "obey_request", Flag, "`true` for the forward proxy, `false` for sites",
        "Obey `Cache-Control` and `Pragma` of requests (a reload asks the origin). A value given here holds for both. A `[[rule]]` takes precedence over a `[[site]]`, which takes precedence over this."),
    fixed("cache", "store_set_cookie", Flag, "false",
        "Store answers with `Set-Cookie`, and send the cookie to all clients, even if neither `public` nor `s-maxage` permits sharing."),
    free("cache", "store_post", Flag, "`false` for the forward proxy, `true` for sites",
        "Store the answer to a POST for later GETs if it has a lifetime and a `Content-Location` of the same URL. A value given here holds for both."),

    free("rule", "name", Name, "`rule-1` for the first, and so on",
        "What the rule is called in `Cache-Status`, the log and `foxy why`."),
    free("rule", "site", Patterns(Of::Site), "all",
        "Sites that the rule is for; `forward` is the forward proxy."),
    free("rule", "host", Patterns(Of::Host), "all",
        "Hosts that the rule is for. Behind a site without `preserve_host` every host is the origin's: use `site` there."),
    free("rule", "path", Patterns(Of::Path), "all",
        "Paths that the rule is for, without the query, in their normal form (see `cache.normalise`)."),
    free("rule", "query_ignore", Patterns(Of::Parameter), "none",
        "Query parameters to ignore: URLs that differ only in them share one object. The origin does not get them."),
    free("rule", "query_keep", Patterns(Of::Parameter), "all",
        "The only query parameters that count; the origin gets no others. Names are compared decoded, and only `&` separates parameters. Not together with `query_ignore`."),
    free("rule", "query_sort", Flag, "`false`",
        "Ignore the order of query parameters. The origin gets them sorted."),
    free("rule", "key_headers", FieldNames, "none",
        "Request fields by which answers differ although the origin's `Vary` does not say so. Purging a URL purges them all."),
    free("rule", "key_cookies", Patterns(Of::Cookie), "none",
        "Cookies by which answers differ."),
    free("rule", "bypass", Flag, "`false`",
        "Whether all these requests pass by the cache: neither answered from it nor kept."),
    free("rule", "bypass_headers", Patterns(Of::Field), "none",
        "Request fields that send a request past the cache."),
    free("rule", "bypass_cookies", Patterns(Of::CookiePattern), "none",
        "Cookies that send a request past the cache."),
    free("rule", "strip_set_cookie", Flag, "`false`",
        "Take `Set-Cookie` off answers that are stored, for all clients. A cookie that a client needs is lost."),
    free("rule", "min_size", Size(0, 1 << 50), AS_IN_CACHE, SEE_CACHE),
    free("rule", "max_size", Size(0, 1 << 50), AS_IN_CACHE, SEE_CACHE),
    free("rule", "default_ttl", DurationOrOff(0, YEAR), AS_IN_CACHE, SEE_CACHE),
    free("rule", "negative_ttl", DurationOrOff(0, YEAR), AS_IN_CACHE, SEE_CACHE),
    free("rule", "server_error_ttl", DurationOrOff(0, YEAR), AS_IN_CACHE, SEE_CACHE),
    free("rule", "ttl_min", DurationOrOff(0, YEAR), AS_IN_CACHE, SEE_CACHE),
    free("rule", "ttl_max", DurationOrOff(0, YEAR), AS_IN_CACHE, SEE_CACHE),
    free("rule", "heuristic_percent", Count(0, 100), AS_IN_CACHE, SEE_CACHE),
    free("rule", "heuristic_max", Duration(0, YEAR), AS_IN_CACHE, SEE_CACHE),
    free("rule", "stale_on_disconnect", Duration(0, YEAR), AS_IN_CACHE, SEE_CACHE),
    free("rule", "stale_if_error", DurationOrOff(0, YEAR), AS_IN_CACHE, SEE_CACHE),
    free("rule", "stale_while_revalidate", DurationOrOff(0, YEAR), AS_IN_CACHE, SEE_CACHE),
    free("rule", "obey_request", Flag, "as for the site, else as in `[cache]`", SEE_CACHE),
    free("rule", "store_set_cookie", Flag, AS_IN_CACHE, SEE_CACHE),
];

const CERTIFICATE: &str = "PEM file with a certificate and those that lead to its authority. Its alternative names choose it; `*.` at the front of one stands for one label. Files are looked at every 10 seconds: what has changed is used for new connections, and what cannot be used is reported while the old one stays.";
const KEY: &str = "PEM file with the key of `certificate`.";
const CERTIFICATES: &str = "Folder with further certificates: `NAME.crt` or `NAME.pem` with `NAME.key`, and folders that contain `tls.crt` with `tls.key`, or `fullchain.pem` with `privkey.pem`.";
const DEFAULT_CERTIFICATE: &str =
    "A name of the certificate for clients that ask for none, or for a name without certificate.";

const CLIENT_CERTIFICATE: Kind = Word(&["require", "request"]);
const CLIENT_CA: &str = "PEM file with the authorities whose certificates clients show in the handshake with these certificates. What a client shows is always verified; {client_subject} and {client_names} tell the origin of it (see `site.request_headers`). Sessions are not continued, so each connection is checked. A request over a connection that was made for another site gets 421.";
const CLIENT_CERTIFICATE_ABOUT: &str = "`require`: clients without a certificate are refused in the handshake. `request`: they may come without one.";

const AS_IN_CACHE: &str = "as in `[cache]`";
const SEE_CACHE: &str = "As in `[cache]`, for what the rule is for.";

/// Introductions to the sections, for the reference.
pub const SECTIONS: &[(&str, &str)] = &[
    ("", "Top of the file, before any section."),
    (
        "store",
        "One `[[store]]` per disk. Without any, Foxy makes one; `foxy serve --store off` runs from memory alone.",
    ),
    (
        "tls",
        "Certificates for `listen_tls`, for the forward proxy and for sites that have none of their own. TLS 1.2 and 1.3 are spoken.",
    ),
    (
        "admission",
        "Which of the objects that may be kept go to disks. All of them do, unless there is a write budget; what does not is kept in memory for as long as there is room.",
    ),
    (
        "scrub",
        "All that is stored is read again every now and then: what has gone bad is dropped before somebody asks for it, and regions that cannot be read are put in quarantine.",
    ),
    (
        "site",
        "One `[[site]]` per reverse proxy, beside or instead of the forward proxy.",
    ),
    ("log", "What is written down."),
    ("access", "Who may do what."),
    ("limits", "Bounds on what one client can use."),
    (
        "timeouts",
        "How long Foxy waits for others. Each is exact to about a quarter of a second.",
    ),
    ("upstream", "Connections to origins."),
    ("fill", "Fetches that serve many clients at once."),
    ("headers", "Fields that Foxy adds."),
    ("cache", "Where the caching rules leave a choice."),
    (
        "rule",
        "One `[[rule]]` per group of hosts and paths that is treated otherwise. The first rule that fits a request decides alone; what it does not say is as in `[cache]`. Lifetimes count from when an answer is stored or validated: what is stored already keeps its own. In patterns `*` stands for anything.",
    ),
];
