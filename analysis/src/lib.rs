//! Sealing records into canonical Parquet, and reading them back.
