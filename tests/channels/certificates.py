"""Encryption for scripted servers: an authority for the time of the run, which adapters are told to trust."""

import functools
import pathlib
import ssl
import tempfile

import trustme


@functools.cache
def authority():
    return trustme.CA()


@functools.cache
def authority_file():
    """The certificate of the authority, as a file."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="agentsvc-authority-"), "ca.pem")
    authority().cert_pem.write_to_path(path)
    return path


def server_context(*hosts):
    """What a server of these hosts encrypts with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert(*hosts).configure_cert(context)
    return context
