mod damage;

use super::to_npy;
use crate::prior::Table;

/// numpy 2.4.6: `np.save(f, np.array([[1/3, -0.0, 5e-324], [np.nan, -1e308, 2.0]]))`, as
/// `f.getvalue().hex()` gives it, less the blanks (`20`) that fill its header up to 128 bytes.
const NUMPY: [&str; 2] = [
    "934e554d5059010076007b276465736372273a20273c6638272c2027666f727472616e5f6f72646572273a2046616c\
     73652c20277368617065273a2028322c2033292c207d",
    "0a555555555555d53f00000000000000800100000000000000000000000000f87fa0c8eb85f3cce1ff000000000000\
     0040",
];

fn numpy() -> Vec<u8> {
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    };
    let mut file = bytes(NUMPY[0]);
    file.resize(127, b' ');
    file.extend(bytes(NUMPY[1]));
    file
}

/// A file with any header.
fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = [b"\x93NUMPY", &[version, 0][..]].concat();
    match version {
        1 => bytes.extend((header.len() as u16).to_le_bytes()),
        _ => bytes.extend((header.len() as u32).to_le_bytes()),
    }
    [&bytes, header.as_bytes(), data].concat()
}

fn header(descr: &str, order: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n")
}

fn values(bytes: &[u8]) -> Vec<f64> {
    Table::parse("a.npy", bytes).unwrap().values().to_vec()
}

fn error(bytes: &[u8]) -> String {
    let error = Table::parse("a.npy", bytes).unwrap_err();
    assert_eq!(Table::parse_incomplete("a.npy", bytes), Err(error.clone()));
    error.to_string()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn a_file_of_numpy() {
    let expected = [1.0 / 3.0, -0.0, 5e-324, f64::NAN, -1e308, 2.0];
    let table = Table::parse_incomplete("a.npy", &numpy()).unwrap();
    assert_eq!((table.rows(), table.columns()), (2, 3));
    assert_eq!(bits(table.values()), bits(&expected));
    assert_eq!(to_npy(2, 3, &expected), numpy());
    assert_eq!(
        Table::parse("a.npy", &numpy()).unwrap_err().to_string(),
        "a.npy, row 2, column 1: NaN is not a finite number"
    );
}

#[test]
fn all_gaps_have_the_same_bits() {
    let odd = [f64::from_bits(0x7ff0000000000001), f64::from_bits(0xfff8000000000123)];
    let table = Table::parse_incomplete("a.npy", &to_npy(1, 2, &odd)).unwrap();
    assert_eq!(bits(table.values()), bits(&[f64::NAN; 2]));
}

#[test]
fn every_type() {
    for (descr, data, expected) in [
        ("'<f8'", &[0, 0, 0, 0, 0, 0, 4, 0xc0][..], -2.5),
        ("'>f8'", &[0xc0, 4, 0, 0, 0, 0, 0, 0], -2.5),
        ("'<f4'", &[0, 0, 0x20, 0xc0], -2.5),
        ("'>f4'", &[0xc0, 0x20, 0, 0], -2.5),
        ("'|i1'", &[0xfe], -2.0),
        ("'<i2'", &[0xfe, 0xff], -2.0),
        ("'>i2'", &[0xff, 0xfe], -2.0),
        ("'<i4'", &[0, 0, 0, 0x80], -2147483648.0),
        ("'>i4'", &[0x80, 0, 0, 0], -2147483648.0),
        ("'<i8'", &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], -2.0),
        ("'>i8'", &[0x80, 0, 0, 0, 0, 0, 0, 0], -9223372036854775808.0),
        ("'|u1'", &[0xfe], 254.0),
        ("'<u2'", &[1, 2], 513.0),
        ("'>u2'", &[1, 2], 258.0),
        ("'<u4'", &[0, 0, 0, 0x80], 2147483648.0),
        ("'>u4'", &[0x80, 0, 0, 0], 2147483648.0),
        // 2^64 - 1 is rounded as the text of it is.
        ("'<u8'", &[0xff; 8], 18446744073709551615.0),
        ("'>u8'", &[0, 0, 0, 0, 0, 0, 1, 2], 258.0),
        ("'|b1'", &[1], 1.0),
    ] {
        for version in 1..=3 {
            assert_eq!(values(&file(version, &header(descr, "False", "(1,)"), data)), [expected]);
        }
    }
}

#[test]
fn orders_and_shapes() {
    let read = |order, shape| {
        let bytes = file(1, &header("'|u1'", order, shape), &[1, 2, 3, 4, 5, 6]);
        let table = Table::parse("a.npy", &bytes).unwrap();
        (table.rows(), table.columns(), table.values().to_vec())
    };
    let straight = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    assert_eq!(read("False", "(2, 3)"), (2, 3, straight.clone()));
    assert_eq!(read("True", "(2L, 3L)"), (2, 3, vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.0]));
    assert_eq!(read("False", "(6,)"), (6, 1, straight.clone()));
    assert_eq!(read("True", "(6,)"), (6, 1, straight.clone()));
    assert_eq!(read("True", "(1, 6)"), (1, 6, straight));
}

#[test]
fn a_header_may_be_written_in_other_ways() {
    for header in [
        "{\"shape\":(1,),\"descr\":\"|u1\",\"fortran_order\":False}",
        "  { 'fortran_order' : False , 'shape' : ( 1 , ) , 'descr' : '<u1' , }  \n\n",
    ] {
        assert_eq!(values(&file(2, header, &[7])), [7.0], "{header}");
    }
}

#[test]
fn headers_that_are_not_understood() {
    let descr = "'descr': '|u1'";
    for header in [
        String::new(),
        "{}".to_owned(),
        "}{".to_owned(),
        format!("{{{descr}, 'fortran_order': False}}"),
        format!("{{{descr}, {descr}, 'fortran_order': False, 'shape': (1,)}}"),
        format!("{{{descr}, 'fortran_order': False, 'shape': (1,), 'more': 1}}"),
        format!("{{{descr}, 'fortran_order': False, 'shape': (1,)"),
        format!("{{{descr}, 'fortran_order': False, 'shape': (1,)}} more"),
        header("'|u1'", "0", "(1,)"),
        header("'|u1'", "False", "1"),
        header("'|u1'", "False", "(-1,)"),
        header("'|u1'", "False", "(1 1)"),
        header("'|u1'", "False", "(1,,)"),
        header("'|u1'", "False", "(L,)"),
    ] {
        let expected = format!(
            "a.npy: the NPY header {:?} is not one of np.save; write np.save(path, a.astype(float))",
            header.trim()
        );
        let bytes = file(1, &header, &[1]);
        let shown = error(&bytes);
        assert!(shown == expected || header.trim().len() > 80, "{shown}");
        assert!(shown.starts_with("a.npy: the NPY header \""), "{shown}");
    }
}

#[test]
fn errors_say_what_was_found_and_what_to_write() {
    let given = |descr, shape, data| error(&file(1, &header(descr, "False", shape), data));
    for descr in ["'<c16'", "'<f2'", "'<f16'", "'|O'", "'<U3'", "'|f8'", "'=f8'", "'<M8[ns]'", "7"]
    {
        assert_eq!(
            given(descr, "(1,)", &[0]),
            format!("a.npy: NPY values of type {descr}; write np.save(path, a.astype(float))")
        );
    }
    assert_eq!(
        given("[('a', '<f8'), ('}', '<i4', (2,))]", "(1,)", &[0]),
        "a.npy: NPY values of type [('a', '<f8'), ('}', '<i4', (2,))]; write \
         np.save(path, np.array(a.tolist(), dtype=float))"
    );
    for shape in ["()", "(1, 1, 1)"] {
        assert_eq!(
            given("'|u1'", shape, &[0]),
            format!(
                "a.npy: an NPY array of shape {shape} is neither a vector nor a matrix; write \
                 np.save(path, a.reshape(rows, columns))"
            )
        );
    }
    assert_eq!(
        given("'<f8'", "(2, 2)", &[0; 31]),
        "a.npy: 31 bytes are too few for an NPY array of shape (2, 2) with 8 bytes per value; the \
         file was cut off, write it again with np.save"
    );
    assert_eq!(
        given("'<f8'", "(2, 2)", &[0; 33]),
        "a.npy: bytes after the NPY array of shape (2, 2): 1; write one array per file"
    );
    assert_eq!(
        given("'|b1'", "(2,)", &[1, 2]),
        "a.npy: byte 2 is not an NPY truth value; write np.save(path, a.astype(float))"
    );
    assert_eq!(
        error(b"\x93NUMPY\x04\x00"),
        "a.npy: NPY version 4.0 is not 1.0, 2.0 or 3.0; write the file with \
         np.save(path, a.astype(float))"
    );
    assert_eq!(
        given("'<f4'", "(1, 2)", &[0, 0, 0, 0, 0, 0, 0x80, 0xff]),
        "a.npy, row 1, column 2: -inf is not a finite number"
    );
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    let whole = to_npy(2, 2, &[1.0, 2.0, 3.0, 4.0]);
    for length in 6..whole.len() {
        let shown = error(&whole[..length]);
        assert!(shown.contains("cut off"), "{length}: {shown}");
    }
}

#[test]
fn huge_shapes_cost_nothing() {
    let most = u64::MAX;
    for order in ["True", "False"] {
        for shape in [
            format!("({most},)"),
            format!("({most}, {most})"),
            "(2305843009213693952, 1)".to_owned(),
            "(4294967296, 4294967296)".to_owned(),
            format!("({},)", "9".repeat(1000)),
        ] {
            let shown = error(&file(1, &header("'<f8'", order, &shape), &[0; 8]));
            assert!(shown.contains("8 bytes are too few"), "{shown}");
        }
        for shape in [format!("({most}, 0)"), format!("(0, {most})"), "(0,)".to_owned()] {
            let shown = error(&file(1, &header("'<f8'", order, &shape), &[]));
            assert_eq!(shown, "a.npy has no row of numbers; give at least one");
        }
    }
    assert!(error(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{").contains("cut off"));
}

#[test]
#[should_panic(expected = "2 rows of 2 columns")]
fn writing_needs_all_values() {
    to_npy(2, 2, &[1.0]);
}
