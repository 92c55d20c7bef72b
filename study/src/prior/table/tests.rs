use super::*;

fn parse(text: &str) -> Result<Table, TableError> {
    Table::parse("k.csv", text.as_bytes())
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn commas_blanks_headers_and_comments() {
    let expected = Table::from_values(2, vec![1.0, -2.5, 3e-7, 4.0]);
    for text in [
        "1,-2.5\n3e-7,4\n",
        "1 -2.5\n3e-7   4",
        "\u{feff}x, y\r\n1,\t-2.5\r\n\r\n3e-7 , 4\r\n",
        "# made by hand\nx y # a header\n1 -2.5 # first\n\n  3e-7\t4  \n",
    ] {
        let table = parse(text).unwrap();
        assert_eq!(table, expected, "{text:?}");
        assert_eq!((table.rows(), table.columns(), table.row(1)), (2, 2, &[3e-7, 4.0][..]));
    }
}

#[test]
fn errors_name_the_place_and_the_text() {
    assert_eq!(
        error("x,y\n1,2\n3,four\n"),
        "k.csv, line 3, column 2: \"four\" is not a finite number"
    );
    assert_eq!(error("1,,2"), "k.csv, line 1, column 2: \"\" is not a finite number");
    assert_eq!(error("1 nan"), "k.csv, line 1, column 2: \"nan\" is not a finite number");
    assert_eq!(error("inf"), "k.csv, line 1, column 1: \"inf\" is not a finite number");
    assert_eq!(
        error("1 2\n\n3 4 5"),
        "k.csv, line 3: 3 columns in \"3 4 5\", but 2 in the rows before it"
    );
    assert_eq!(error("x,y\n"), "k.csv has no row of numbers; give at least one");
    assert_eq!(
        Table::parse("k.csv", b"1\n2\xff\n").unwrap_err().to_string(),
        "k.csv, line 2: not UTF-8 text; give a CSV file"
    );
}

#[test]
fn a_second_header_is_an_error() {
    assert!(error("x\ny\n1").starts_with("k.csv, line 2, column 1: \"y\""));
}

fn incomplete(text: &str) -> Result<Table, TableError> {
    Table::parse_incomplete("k.csv", text.as_bytes())
}

#[test]
fn gaps_are_nan_where_they_are_allowed() {
    let values = vec![1.0, f64::NAN, f64::NAN, f64::NAN, f64::NAN, 6.0];
    let expected = Table::from_values(3, values);
    for text in ["x,y,z\n1,,NA\nNaN,nan,6", "1 null nan\nNA NaN 6", "1,\t, \n,null,6\n"] {
        let table = incomplete(text).unwrap();
        assert_eq!(table, expected, "{text:?}");
        let bits = |value: &f64| value.to_bits();
        assert!(table.values.iter().map(bits).eq(expected.values.iter().map(bits)));
        assert!(parse(text).unwrap_err().to_string().ends_with("is not a finite number"));
    }
    assert_ne!(incomplete("1,NA").unwrap(), incomplete("NA,1").unwrap());
    assert_eq!(incomplete("1,2").unwrap(), parse("1,2").unwrap());
}

#[test]
fn other_words_and_infinities_are_refused_everywhere() {
    for field in ["inf", "-inf", "1e999", "none", "N/A", "-", "-nan", "\"\""] {
        let text = format!("1,2\n3,{field}\n");
        let expected = format!("k.csv, line 2, column 2: \"{field}\" is not a finite number");
        assert_eq!(incomplete(&text).unwrap_err().to_string(), expected);
        assert_eq!(error(&text), expected);
    }
}

#[test]
fn a_first_row_of_gaps_is_a_row() {
    for text in ["NA,NA\n1,2", ",\n1,2", "null nan\n1 2"] {
        assert_eq!(incomplete(text).unwrap().rows(), 2, "{text:?}");
        assert!(error(text).starts_with("k.csv, line 1, column 1: "), "{text:?}");
    }
    // A country's name is a name.
    assert_eq!(incomplete("NA,BR\n1,2").unwrap(), parse("1,2").unwrap());
}

/// What pandas writes where columns have no names.
#[test]
fn column_numbers_above_floats_are_a_header() {
    for text in ["0,1,2\n0.5,1.0,-2.0\n3e0,0.0,0.25\n", "# x\n0 1 2\n0.5 1.0 -2.0\n3.0 0.0 .25"] {
        let table = parse(text).unwrap();
        assert_eq!(table.values(), [0.5, 1.0, -2.0, 3.0, 0.0, 0.25], "{text:?}");
        let notice = table.notice().unwrap();
        assert!(notice.starts_with("k.csv, line ") && notice.contains("column names"), "{notice}");
    }
    assert_eq!(incomplete("0,1,2\n,NA,0.5").unwrap().rows(), 1);
}

#[test]
fn column_numbers_that_may_be_a_row_are_refused() {
    for text in ["0,1\n0.5,0.5", "0,1,2\n1,0,2\n2,1,0", "0 1 2\n0.5 0.5 0.5\n0.5 -1 0.5"] {
        let expected = "k.csv, line 1: \"0".to_owned();
        let error = error(text);
        assert!(error.starts_with(&expected) && error.contains("header=False"), "{error}");
    }
    // Nothing to confuse them with: written as floats, in another order, or alone.
    for (text, rows) in
        [("0.0,1.0\n0.5,0.5", 2), ("1,0\n0.5,0.5", 2), ("0,1,2", 1), ("0\n0.5\n1", 3)]
    {
        let table = parse(text).unwrap();
        assert_eq!((table.rows(), table.notice()), (rows, None), "{text:?}");
    }
}

#[test]
fn row_numbers_are_not_data() {
    for text in [
        ",0,1,2\n0,0.5,0.1,0.2\n1,0.3,0.4,0.6",
        ",a,b\n0,0.5,0.1",
        ",NA,BR\n1,2,3",
        ",0\n0,0.5",
        "\t0\t1\t2\n0\t0.5\t0.1\t0.2",
        "a b\n1 0.5 0.1",
    ] {
        for parse in [Table::parse, Table::parse_incomplete] {
            let error = parse("k.csv", text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("index=False"), "{text:?}: {error}");
        }
    }
    // A row that begins with a gap, and titles.
    assert_eq!(incomplete(",0.5,1\n0.1,0.2,0.3").unwrap().rows(), 2);
    assert_eq!(parse("measured in June\n0.1,0.2").unwrap().rows(), 1);
    assert_eq!(parse("mean value\n0.1\n0.2").unwrap().rows(), 2);
}

#[test]
fn parquet_is_refused() {
    let expected = "k.parquet is a Parquet file; Parquet files are converted when a study is \
                    loaded: give CSV or NPY here";
    for bytes in [&b"PAR1"[..], b"PAR1\x15\x04\x15\xff PAR1"] {
        for parse in [Table::parse, Table::parse_incomplete] {
            assert_eq!(parse("k.parquet", bytes).unwrap_err().to_string(), expected);
        }
    }
}
