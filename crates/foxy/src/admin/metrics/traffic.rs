//! Metrics about requests, answers, origins and the events of workers.

use foxy_proxy::{CLASSES, Event, OriginTotals, Outcome, Totals, Trouble};

use super::Page;
use crate::admin::State;

pub(super) fn write(state: &State, page: &mut Page) {
    let totals = state.proxy.totals();
    requests(&totals, page);
    origin(&totals.origin, page);
    for event in Event::ALL {
        page.single(
            &event_name(event),
            "counter",
            event.help(),
            totals.event(event),
        );
    }
    let help = "Client connections open now.";
    page.single("foxy_connections", "gauge", help, state.proxy.connections());
}

fn requests(totals: &Totals, page: &mut Page) {
    let name = "foxy_requests_total";
    page.family(name, "counter", "Finished requests by their outcome.");
    for outcome in Outcome::ALL {
        let label = format!("result=\"{}\"", outcome.as_str());
        page.sample(name, &label, totals.outcome(outcome));
    }
    let help = "Finished requests by class of the status that was sent. Class none: the client left before an answer.";
    page.family("foxy_responses_total", "counter", help);
    classes("foxy_responses_total", &totals.classes, page);
    let name = "foxy_response_body_bytes_total";
    page.family(
        name,
        "counter",
        "Body bytes sent to clients, by the outcome of the request.",
    );
    for outcome in Outcome::ALL {
        let label = format!("result=\"{}\"", outcome.as_str());
        page.sample(name, &label, totals.body(outcome));
    }
    let name = "foxy_request_duration_seconds";
    page.family(
        name,
        "histogram",
        "Time from the parsed head of a request to the last byte of its answer, for hits and for all other requests except tunnels.",
    );
    page.histogram(name, "kind=\"hit\"", &totals.hits);
    page.histogram(name, "kind=\"other\"", &totals.misses);
}

fn classes(name: &str, counts: &[u64; CLASSES.len()], page: &mut Page) {
    for (class, count) in CLASSES.iter().zip(counts) {
        page.sample(name, &format!("class=\"{class}\""), count);
    }
}

fn origin(totals: &OriginTotals, page: &mut Page) {
    let name = "foxy_origin_responses_total";
    let help = "Final answers of origins, by class of their status.";
    page.family(name, "counter", help);
    classes(name, &totals.classes, page);
    let name = "foxy_origin_errors_total";
    page.family(
        name,
        "counter",
        "Requests to origins that failed, by reason.",
    );
    for trouble in Trouble::ALL {
        let label = format!("reason=\"{}\"", trouble.as_str());
        page.sample(name, &label, totals.trouble(trouble));
    }
    for (name, help, latency) in [
        (
            "foxy_origin_connect_duration_seconds",
            "Time from the lookup of an origin's name to an open connection, TLS handshake included.",
            &totals.connects,
        ),
        (
            "foxy_origin_first_byte_duration_seconds",
            "Time from the sending of a request's head to the head of the origin's final answer.",
            &totals.answers,
        ),
    ] {
        page.family(name, "histogram", help);
        page.histogram(name, "", latency);
    }
}

/// Returns `foxy_<name>_total`. The names of byte counters contain the peer and the direction, such as
/// `client_received_bytes`. The exporters of other programs use the same words.
fn event_name(event: Event) -> String {
    let word = match event {
        Event::BytesIn => "client_received_bytes",
        Event::BytesOut => "client_sent_bytes",
        Event::OriginBytesIn => "origin_received_bytes",
        Event::OriginBytesOut => "origin_sent_bytes",
        other => other.as_str(),
    };
    format!("foxy_{word}_total")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_events_are_unique_and_end_in_total() {
        let mut names: Vec<_> = Event::ALL.iter().map(|event| event_name(*event)).collect();
        assert!(names.iter().all(|name| name.ends_with("_total")));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), Event::ALL.len());
    }
}
