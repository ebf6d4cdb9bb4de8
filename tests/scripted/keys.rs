//! Encryption keys, kept well enough for a bot that is alone with them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The keys of one device or all cross-signing keys of one user.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// By user and device.
    devices: BTreeMap<(String, String), Value>,
    one_time: BTreeMap<(String, String), Map<String, Value>>,
    /// By user: `master_key`, `self_signing_key`, `user_signing_key`.
    signing: BTreeMap<String, Map<String, Value>>,
}

impl Keys {
    pub(super) fn upload(&mut self, user: &str, device: &str, request: &Value) -> Value {
        let owner = (user.to_owned(), device.to_owned());
        if let Some(keys) = request.get("device_keys").filter(|keys| !keys.is_null()) {
            self.devices.insert(owner.clone(), keys.clone());
        }
        if let Some(fresh) = request["one_time_keys"].as_object() {
            let kept = self.one_time.entry(owner).or_default();
            kept.extend(fresh.clone());
        }
        json!({"one_time_key_counts": {"signed_curve25519": self.count(user, device)}})
    }

    pub(super) fn count(&self, user: &str, device: &str) -> usize {
        let owner = (user.to_owned(), device.to_owned());
        self.one_time.get(&owner).map_or(0, Map::len)
    }

    pub(super) fn query(&self, request: &Value) -> Value {
        let mut answer = json!({
            "failures": {}, "device_keys": {}, "master_keys": {}, "self_signing_keys": {},
            "user_signing_keys": {},
        });
        let asked = request["device_keys"].as_object();
        for user in asked.into_iter().flat_map(Map::keys) {
            answer["device_keys"][user] = json!({});
            for ((owner, device), keys) in &self.devices {
                if owner == user {
                    answer["device_keys"][user][device] = keys.clone();
                }
            }
            for kind in ["master", "self_signing", "user_signing"] {
                let keys = self.signing.get(user);
                if let Some(key) = keys.and_then(|keys| keys.get(&format!("{kind}_key"))) {
                    answer[format!("{kind}_keys")][user] = key.clone();
                }
            }
        }
        answer
    }

    pub(super) fn claim(&mut self, request: &Value) -> Value {
        let mut claimed = json!({});
        let asked = request["one_time_keys"].as_object();
        for (user, devices) in asked.into_iter().flatten() {
            for device in devices.as_object().into_iter().flat_map(Map::keys) {
                let owner = (user.clone(), device.clone());
                let Some(keys) = self.one_time.get_mut(&owner) else {
                    continue;
                };
                if let Some(name) = keys.keys().next().cloned() {
                    let key = keys.remove(&name);
                    claimed[user][device] = json!({name: key});
                }
            }
        }
        json!({"failures": {}, "one_time_keys": claimed})
    }

    pub(super) fn upload_signing(&mut self, user: &str, request: &Value) {
        let kept = self.signing.entry(user.to_owned()).or_default();
        for (name, key) in request.as_object().into_iter().flatten() {
            if name.ends_with("_key") {
                kept.insert(name.clone(), key.clone());
            }
        }
    }

    /// Adds signatures to keys that are known.
    pub(super) fn sign(&mut self, request: &Value) {
        for (user, signed) in request.as_object().into_iter().flatten() {
            for (what, signed) in signed.as_object().into_iter().flatten() {
                let device = self.devices.get_mut(&(user.clone(), what.clone()));
                let signing = self.signing.get_mut(user).into_iter();
                let named = signing.flat_map(Map::values_mut).filter(|key| {
                    let keys = key["keys"].as_object();
                    keys.is_some_and(|keys| keys.keys().any(|name| name.ends_with(what)))
                });
                for key in device.into_iter().chain(named) {
                    merge(&mut key["signatures"], &signed["signatures"]);
                }
            }
        }
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
