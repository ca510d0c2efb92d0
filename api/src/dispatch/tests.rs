//! Tests of the way of a request.
