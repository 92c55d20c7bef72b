//! Properties: whatever is written is read, and whatever is damaged is read or refused.

use super::{bits, file, header, numpy};
use crate::prior::{Table, TableError, to_npy};
use proptest::{
    bool::weighted,
    collection::vec,
    prelude::{
        Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
    },
    sample::{Index, select},
};

/// Parts of headers, in and out of place.
fn scrambled_header() -> impl Strategy<Value = String> {
    let parts = "{~}~(~)~[~]~'~\"~,~:~ ~\n~\\~\u{e9}~0~3~L~-1~True~False~'descr'~'shape'\
                 ~'fortran_order'~'<f8'~'>i2'~'|b1'~(18446744073709551615,~(2, 3)\
                 ~{'descr': '<f8', ~'fortran_order': True, ~'shape': (2, 3), }";
    let parts: Vec<&str> = parts.split('~').collect();
    vec(select(parts), 0..12).prop_map(|parts| parts.concat())
}

/// Valid files with bytes changed, cut off and added.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let u1 = |order| file(3, &header("'|u1'", order, "(2, 3)"), &[0, 1, 0, 1, 1, 1]);
    let whole = prop_oneof![
        select(vec![numpy(), to_npy(3, 2, &[1.0; 6]), u1("True"), u1("False")]),
        (1_u8..=3, scrambled_header(), vec(any::<u8>(), 0..50))
            .prop_map(|(version, header, data)| file(version, &header, &data)),
    ];
    // Bytes that mean something in a header come as often as others.
    let byte = prop_oneof![any::<u8>(), select(b"0123456789<>|fiub'\"(){}[],: ".to_vec())];
    let changes = vec((any::<Index>(), byte), 0..5);
    // Most files keep their length, so that what is behind the check of it is tried too.
    let more = prop_oneof![4 => Just(Vec::new()), 1 => vec(any::<u8>(), 0..10)];
    (whole, changes, any::<Index>(), weighted(0.2), more).prop_map(
        |(mut bytes, changes, length, cut, more)| {
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if cut {
                bytes.truncate(length.index(bytes.len()));
            }
            bytes.extend(more);
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..Default::default() })]

    #[test]
    fn damage_never_panics(bytes in damaged()) {
        let complete = Table::parse("a.npy", &bytes);
        let incomplete = Table::parse_incomplete("a.npy", &bytes);
        if let Ok(table) = &incomplete {
            prop_assert_eq!(table.rows() * table.columns(), table.values().len());
            // Text, where the magic bytes are damaged: one comma is two gaps.
            prop_assert!(table.values().len() <= bytes.len() + 1);
            prop_assert!(!table.values().iter().any(|value| value.is_infinite()));
            let gaps = table.values().iter().any(|value| value.is_nan());
            prop_assert_eq!(gaps, complete.is_err());
        }
        match complete {
            Ok(table) => prop_assert_eq!(Ok(table), incomplete),
            Err(error) => prop_assert!(error.to_string().len() < 400),
        }
    }

    #[test]
    fn what_is_written_is_read(
        (rows, columns, bits_written) in (1_usize..6, 1_usize..6).prop_flat_map(|(rows, columns)| {
            vec(any::<u64>(), rows * columns).prop_map(move |bits| (rows, columns, bits))
        }),
        version in 1_u8..=3,
        big in any::<bool>(),
        fortran in any::<bool>(),
    ) {
        let written: Vec<f64> = bits_written.into_iter().map(f64::from_bits).collect();
        let descr = if big { "'>f8'" } else { "'<f8'" };
        let order = if fortran { "True" } else { "False" };
        let place = |i: usize| if fortran { i % rows * columns + i / rows } else { i };
        let bytes = |value: f64| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let data: Vec<u8> = (0..written.len()).flat_map(|i| bytes(written[place(i)])).collect();
        let header = header(descr, order, &format!("({rows}, {columns})"));
        for bytes in [file(version, &header, &data), to_npy(rows, columns, &written)] {
            let bad = written.iter().position(|value| !value.is_finite());
            match (Table::parse("a.npy", &bytes), bad) {
                (Ok(table), None) => {
                    prop_assert_eq!((table.rows(), table.columns()), (rows, columns));
                    prop_assert_eq!(bits(table.values()), bits(&written));
                }
                (Err(TableError::Value { row, column, .. }), Some(i)) => {
                    prop_assert_eq!((row, column), (i / columns + 1, i % columns + 1));
                }
                (found, _) => prop_assert!(false, "{found:?}"),
            }
        }
    }
}
