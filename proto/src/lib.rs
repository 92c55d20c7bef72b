//! The wire: messages, services and conversions that validate.
//!
//! [`v1`] is generated from `proto/regretta/v1/*.proto` and holds whatever a peer chose to send.
//! [`convert`] turns it into types that cannot be wrong; nothing else should read a field of a message
//! that came from outside.

pub mod convert;
pub mod limits;

/// Messages, clients and servers of package `regretta.v1`, as generated.
pub mod v1 {
    #![expect(
        clippy::allow_attributes,
        clippy::pedantic,
        unused_qualifications,
        reason = "generated"
    )]

    tonic::include_proto!("regretta.v1");
}

/// The descriptors of all messages and services, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("regretta");
