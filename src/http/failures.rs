//! Who sent wrong tokens lately, so that guessing is slow.
//!
//! Only wrong tokens are counted and only wrong tokens are held back: an agent
//! with a right one is served however many others guess from its address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// So many wrong tokens per [`WINDOW`] are told that they are wrong; the next ones are not read.
const ALLOWED: u32 = 10;
const WINDOW: Duration = Duration::from_mins(1);
/// More addresses than this are not remembered: guessing from many cannot fill the memory.
const MAX_ADDRESSES: usize = 4096;

#[derive(Debug)]
struct Window {
    since: Instant,
    count: u32,
}

/// The memory of failed tokens, per address.
#[derive(Debug, Default)]
pub struct Failures {
    windows: HashMap<IpAddr, Window>,
}

impl Failures {
    /// Counts a wrong token. Gives back how long this address has to wait, if it is over the limit.
    pub fn note(&mut self, from: IpAddr, now: Instant) -> Option<Duration> {
        let from = network(from);
        if !self.windows.contains_key(&from) {
            self.make_room(now);
        }
        let window = self.windows.entry(from).or_insert(Window {
            since: now,
            count: 0,
        });
        let age = now.saturating_duration_since(window.since);
        if age >= WINDOW {
            *window = Window {
                since: now,
                count: 1,
            };
            return None;
        }
        window.count = window.count.saturating_add(1);
        (window.count > ALLOWED).then(|| WINDOW.saturating_sub(age))
    }

    fn make_room(&mut self, now: Instant) {
        if self.windows.len() < MAX_ADDRESSES {
            return;
        }
        self.windows
            .retain(|_, window| now.saturating_duration_since(window.since) < WINDOW);
        if self.windows.len() >= MAX_ADDRESSES {
            let oldest = self.windows.iter().min_by_key(|(_, window)| window.since);
            if let Some(address) = oldest.map(|(address, _)| *address) {
                self.windows.remove(&address);
            }
        }
    }
}

/// What one guesser holds: an IPv4 address, or a whole IPv6 /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let prefix = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn the_eleventh_wrong_token_of_a_minute_is_held_back() {
        let mut failures = Failures::default();
        let start = Instant::now();
        for _ in 0..10 {
            assert_eq!(failures.note(address(1), start), None);
        }
        let later = start + Duration::from_secs(20);
        assert_eq!(
            failures.note(address(1), later),
            Some(Duration::from_secs(40))
        );
        assert_eq!(failures.note(address(2), later), None);
    }

    #[test]
    fn after_a_minute_the_count_begins_anew() {
        let mut failures = Failures::default();
        let start = Instant::now();
        for _ in 0..11 {
            failures.note(address(1), start);
        }
        assert_eq!(failures.note(address(1), start + WINDOW), None);
    }

    #[test]
    fn neighbours_in_one_ipv6_network_count_together() {
        let mut failures = Failures::default();
        let now = Instant::now();
        for host in 0..10_u16 {
            let from = Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 0, 0, 0, host);
            assert_eq!(failures.note(from.into(), now), None);
        }
        let from = Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 9, 9, 9, 9);
        assert_eq!(failures.note(from.into(), now), Some(WINDOW));
        let mapped = address(1).to_string();
        let mapped: IpAddr = format!("::ffff:{mapped}").parse().unwrap();
        assert_eq!(network(mapped), address(1));
    }

    #[test]
    fn many_addresses_do_not_fill_the_memory() {
        let mut failures = Failures::default();
        let start = Instant::now();
        for number in 0..MAX_ADDRESSES + 50 {
            let number = u32::try_from(number).unwrap();
            let now = start + Duration::from_millis(u64::from(number));
            failures.note(IpAddr::from(number.to_be_bytes()), now);
        }
        assert_eq!(failures.windows.len(), MAX_ADDRESSES);
        // The oldest made room, the newest are remembered.
        assert!(
            !failures
                .windows
                .contains_key(&IpAddr::from(0_u32.to_be_bytes()))
        );
    }
}
