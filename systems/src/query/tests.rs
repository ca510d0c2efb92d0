//! Tests of queries.
