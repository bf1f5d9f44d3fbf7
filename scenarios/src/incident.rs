//! Incidents: what an operator must see of them, everywhere, and which alert rule tells of them.

use std::time::Duration;

use foxy_base::{Clock, MonoTime, SystemClock};

use foxy_disk::FaultRule;

use crate::{Reply, Scene, secs};

/// Rules and their tests, as they are delivered.
const RULES: &str = include_str!("../../dist/prometheus/alerts.yaml");
const TESTS: &str = include_str!("../../dist/prometheus/alerts_test.yaml");

/// An incident that an operator must see.
#[derive(Clone, Copy, Debug)]
pub struct Incident<'a> {
    /// The alert rule. Its query names the metric, and a case of its tests expects it.
    pub alert: &'a str,
    /// The beginning of a sample of `/metrics`: the metric and its first labels.
    pub sample: &'a str,
    /// Its value; `None`: any but 0.
    pub value: Option<&'a str>,
    /// Text of `/stats`.
    pub stats: &'a str,
    /// Text of `/readyz`.
    pub ready: &'a str,
}

impl Incident<'_> {
    /// True if metrics, figures and readiness show it.
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

    /// The rule has a query with the metric, and a case of its tests in which it fires.
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
    /// A scene with a store, one object in it, and this fault from then on.
    pub fn with_faulty_disk(rule: FaultRule) -> Self {
        let scene = Self::with().disk().begin();
        scene.origin.plays("/a", Reply::ok("hello").max_age(3600));
        scene.get("/a").miss();
        scene.settle();
        assert!(!scene.page("/readyz").contains("\nstore "));
        scene.disk().set_faults(rule);
        scene
    }

    /// Asks for new objects while time passes. All are answered.
    pub fn goes_on(&self) {
        for n in 0..20 {
            let path = format!("/{n}");
            self.origin.plays(&path, Reply::ok("fresh").max_age(3600));
            self.get(&path).is(200).says("fresh");
            self.wait(secs(1));
        }
    }

    /// Asks the site `www` for its page so many times; each answer has this status.
    pub fn ask_www(&self, times: usize, status: u16) {
        for _ in 0..times {
            let _ = self.get_at(self.site(), "www.test", "/a").is(status);
        }
    }

    /// Waits until an incident is seen everywhere, and prints after how long. The bound is wide,
    /// for busy machines: an operator must see it within 5 seconds, and this says how long it took.
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
