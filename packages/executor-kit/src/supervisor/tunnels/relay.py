"""Gives programs access to the host's proxy: a loopback port, and the certificates to trust. Python 3.8 or later."""

import os

import _fenced_tunnels as tunnels

# Where distributions keep the certificates of trusted authorities.
BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def listen(directory, authorities):
    """Opens the port once, and writes a certificate file if there are certificates to add; returns the answer for the host."""
    try:
        file = trust(directory, authorities) if authorities else ""
        return "port %d %s" % (open_port(), file)
    except (ImportError, OSError) as error:
        return "problem " + str(error)


def open_port():
    made = tunnels.listener(tunnels.NETWORK)
    if made is None:
        import _socket

        made = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        made.bind(("127.0.0.1", 0))
        tunnels.listen(tunnels.NETWORK, made)
    # Another host may have listened before this one.
    tunnels.attend(tunnels.NETWORK, is_heard=True)
    return made.getsockname()[1]


def trust(directory, authorities):
    """Programs read only one file, so it also includes the certificates that this place trusts."""
    place = os.path.join(directory, "authorities.pem")
    with open(place, "wb") as file:
        file.write(authorities)
        for bundle in BUNDLES:
            if os.path.isfile(bundle):
                with open(bundle, "rb") as known:
                    file.write(b"\n" + known.read())
                break
    return place
