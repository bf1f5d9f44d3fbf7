//! Incidents such as a full disk. An operator must see each incident on several pages of Foxy, and an alert
//! rule must report it.

use std::time::Duration;

use foxy_base::{Clock, MonoTime, SystemClock};

use foxy_disk::FaultRule;

use crate::{Reply, Scene, secs};

/// The alert rules for Prometheus, as users get them.
const RULES: &str = include_str!("../../dist/prometheus/alerts.yaml");
/// The tests of the alert rules.
const TESTS: &str = include_str!("../../dist/prometheus/alerts_test.yaml");

/// An incident that an operator must see.
#[derive(Clone, Copy, Debug)]
pub struct Incident<'a> {
    /// Name of the alert rule. The rule's query must contain the metric of `sample`, and a test of the rules
    /// must expect the alert.
    pub alert: &'a str,
    /// The beginning of a line of `/metrics`: the metric and its first labels.
    pub sample: &'a str,
    /// The value in this line; `None`: any value but 0.
    pub value: Option<&'a str>,
    /// Text that `/stats` must contain.
    pub stats: &'a str,
    /// Text that `/readyz` must contain.
    pub ready: &'a str,
}

impl Incident<'_> {
    /// True if metrics, statistics and readiness show the incident.
    fn is_seen(&self, scene: &Scene) -> bool {
        let metrics = scene.page("/metrics");
        let mut samples = metrics
            .lines()
            .filter_map(|line| line.strip_prefix(self.sample)?.rsplit_once(' '));
        let found = samples.any(|(_, value)| self.value.map_or(value != "0", |of| of == value));
        found
            && scene.page("/stats").contains(self.stats)
            && scene.page("/readyz").contains(self.ready)
    }

    /// Checks that the rule's query contains the metric, and that a test of the rules expects the alert.
    fn has_rule(&self) {
        let name = format!("- alert: {}\n", self.alert);
        let rule = RULES.split_once(&name).map(|(_, rest)| rest);
        let rule = rule.and_then(|rest| rest.split("- alert:").next());
        let rule = rule.unwrap_or_else(|| panic!("no rule {}", self.alert));
        let metric = self.sample.split('{').next().unwrap_or_default().trim();
        assert!(rule.contains(metric), "{metric} is not in {rule}");
        let fires = format!("alertname=\"{}\"", self.alert);
        assert!(TESTS.contains(&fires), "no test of {}", self.alert);
    }
}

impl Scene {
    /// A scene with a store that contains one object. The disk gets this fault after the object is stored.
    pub fn with_faulty_disk(rule: FaultRule) -> Self {
        let scene = Self::with().disk().begin();
        scene.origin.plays("/a", Reply::ok("hello").max_age(3600));
        scene.get("/a").miss();
        scene.settle();
        assert!(!scene.page("/readyz").contains("\nstore "));
        scene.disk().set_faults(rule);
        scene
    }

    /// Requests new objects while time passes. All requests must be answered.
    pub fn goes_on(&self) {
        for n in 0..20 {
            let path = format!("/{n}");
            self.origin.plays(&path, Reply::ok("fresh").max_age(3600));
            self.get(&path).is(200).says("fresh");
            self.wait(secs(1));
        }
    }

    /// Requests the path `/a` of the site `www` this many times. Each answer must have this status.
    pub fn ask_www(&self, times: usize, status: u16) {
        for _ in 0..times {
            let _ = self.get_at(self.site(), "www.test", "/a").is(status);
        }
    }

    /// Waits until metrics, statistics and readiness show the incident, and prints the time that this took.
    /// An operator must see an incident within 5 seconds. The limit here is longer, because the machine may
    /// be busy.
    pub fn shows(&self, incident: Incident<'_>) {
        incident.has_rule();
        let clock = SystemClock::default();
        let since = || clock.mono().since(MonoTime::default());
        while !incident.is_seen(self) {
            assert!(
                since() < Duration::from_secs(60),
                "not to be seen: {incident:?}\n{}\n{}\n{}",
                self.page("/readyz"),
                self.page("/stats"),
                self.page("/metrics")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        println!("{}: seen after {:?}", incident.alert, since());
    }
}
