//! What the tables of keys say is what the parser does.

use super::*;
use keys::{REQUIRED, TABLES};
use schema::{Absent, DOMAINS, FEATURES, Kind};

/// A study in which a key can be given: the full one, or one on real data.
fn base(key: &str) -> String {
    let plain = FULL.replace(SWEEP, "");
    if !["from_data", "rewards", "inputs", "sense", "protocol"].contains(&key) {
        return plain;
    }
    let (study, rest) = plain.split_once("[prior]").unwrap();
    let (_, grid) = rest.split_once("[grid]").unwrap();
    format!("{study}[prior]\nsetting = \"data\"\nrewards = \"r.csv\"\n\n[grid]{grid}")
}

/// A study without a key of a table, and with another line in its place.
fn replaced(base: &str, table: &str, key: &str, line: &str) -> String {
    let start = format!("{key} = ");
    let head = if table == "claim" { "[[claim]]".to_owned() } else { format!("[{table}]") };
    let mut text = String::new();
    let mut here = false;
    for old in base.lines() {
        if old.starts_with('[') {
            here = old == head;
        }
        if here && old.starts_with(&start) {
            continue;
        }
        text.push_str(old);
        text.push('\n');
        if old == head {
            text += line;
        }
    }
    text
}

/// A date is valid nowhere, so a key that takes one is a key that nobody reads.
#[test]
fn every_key_is_read() {
    for table in TABLES {
        for key in table.keys {
            let line = format!("{} = 2018-01-01\n", key.name);
            let text = replaced(&base(key.name), table.name, key.name, &line);
            let error = parse(&text).expect_err(&text);
            assert_eq!(error.key, format!("{}.{}", table.name, key.name), "{error}");
            assert_ne!(error.reason, "is not a key of study files", "{error}");
        }
    }
}

#[test]
fn what_is_called_required_is_and_nothing_else() {
    for table in TABLES {
        for key in table.keys {
            let base = base(key.name);
            let without = parse(&replaced(&base, table.name, key.name, ""));
            if (key.default)().starts_with(REQUIRED) {
                let error = without.expect_err(key.name);
                assert_eq!(error.reason, "is missing", "{error}");
                assert_eq!(error.key, format!("{}.{}", table.name, key.name));
            } else {
                without.unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }
}

/// The defaults of kinds are those of the types.
#[test]
fn the_types_have_the_defaults_of_the_tables() {
    let of_kinds = |section: &str, kinds: &[Kind], examples: &[(&str, &str)]| {
        for kind in kinds {
            let needed = kind.fields.iter().filter(|field| field.absent == Absent::Required);
            let needed = needed.map(|field| {
                let example = examples.iter().find(|(name, _)| *name == field.name);
                format!(", \"{}\": {}", field.name, example.map_or("0.5", |(_, value)| value))
            });
            let needed: String = needed.collect();
            let text = format!("{{ \"kind\": \"{}\"{needed} }}", kind.name);
            let spec = match section {
                "domain" => json::<crate::prior::DomainSpec>(&text),
                "kernel" => json::<crate::prior::KernelSpec>(&text),
                "mean" => json::<crate::prior::MeanSpec>(&text),
                _ => json::<crate::prior::Features>(&text),
            };
            for field in kind.fields {
                let value = &spec[field.name];
                match field.absent {
                    Absent::Required => assert!(!value.is_null(), "{text}"),
                    Absent::Number(number) => assert_eq!(value.as_f64(), Some(number), "{text}"),
                    Absent::Name(name) => assert_eq!(value.as_str(), Some(name), "{text}"),
                }
            }
        }
    };
    let examples = [
        ("points", "9"),
        ("dimension", "2"),
        ("functions", "3"),
        ("path", "\"a.csv\""),
        ("terms", "[]"),
        ("factors", "[]"),
        ("weights", "[1.0]"),
    ];
    of_kinds("domain", DOMAINS, &examples);
    of_kinds("kernel", schema::KERNELS, &examples);
    of_kinds("mean", schema::MEANS, &examples);
    of_kinds("features", FEATURES, &examples);
}

/// What a text is as a specification, defaults filled in.
fn json<T: serde::Serialize + serde::de::DeserializeOwned>(text: &str) -> serde_json::Value {
    let spec: T = serde_json::from_str(text).expect(text);
    serde_json::to_value(spec).unwrap()
}

#[test]
fn numbers_in_words_are_those_of_the_code() {
    let sobol = DOMAINS.iter().find(|kind| kind.name == "sobol").unwrap();
    assert!(sobol.meaning.contains(&format!("at most {}", crate::prior::SOBOL_DIMENSIONS)));
    let named = |name: String| parse(&FULL.replacen("lemma1", &name, 1));
    assert!(named("a".repeat(100)).is_ok());
    assert!(named("a".repeat(101)).is_err());
}
