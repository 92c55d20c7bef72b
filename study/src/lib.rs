//! What is to be run and what comes back.
