//! The wire: messages, services and conversions that validate.
