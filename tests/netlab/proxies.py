# SPDX-License-Identifier: BSD-3-Clause
"""
HAProxy and nginx in front of a World's server, in the clients' namespace, with persistent
connections to the server and HTTP/1.1. Each gives a request that it forwards a tag of its own in
User-Agent, which is in the access log of the server, and logs the tag.

Each has two ports: on STRICT with its defaults, on LAX with what it can be made to accept.

Sample runs HAProxy, nginx or Caddy with its file of examples/proxies.
"""
import os
import signal
import socket
import subprocess

from tests.netlab.limits import time_limit
from tests.netlab.world import CLIENT_ADDR, REPO, SERVER_ADDR, inside, until

ADDR = "127.0.0.1"
STRICT, LAX = 8081, 8082
WAIT = "2s"  # how long a front waits for the rest of a request

HAPROXY = f"""
global
    nbthread 1  # threads that write to one log at the same time lose lines
    log stdout format raw local0
    maxconn 4000
defaults
    mode http
    log global
    timeout connect 60s
    timeout server 60s
    timeout client {WAIT}
    timeout http-request {WAIT}
    timeout http-keep-alive {WAIT}
    unique-id-format tag-%ci:%cp-%rt
    log-format "%ID %Tc %ST %ts %HP"
    http-reuse always
    default_backend server
frontend strict
    bind {ADDR}:{STRICT}
    http-request set-header User-Agent %[unique-id]
frontend lax
    bind {ADDR}:{LAX}
    option accept-invalid-http-request
    http-request set-header User-Agent %[unique-id]
backend server
    option accept-invalid-http-response
    option httpchk
    http-check send meth GET uri / ver HTTP/1.1 hdr Host nightjar.test hdr User-Agent check
    server nightjar {SERVER_ADDR}:80 @check@
"""

NGINX = f"""
daemon off;
worker_processes 1;
pid @folder@/nginx.pid;
error_log @folder@/nginx.err;
events {{ worker_connections 4000; }}
http {{
    log_format tags 'tag-$connection-$connection_requests $upstream_addr $upstream_status -- $uri';
    access_log @folder@/nginx.log tags;
    client_body_temp_path @folder@/body;
    proxy_temp_path @folder@/proxy;
    fastcgi_temp_path @folder@/fastcgi;
    uwsgi_temp_path @folder@/uwsgi;
    scgi_temp_path @folder@/scgi;
    client_header_timeout {WAIT};
    client_body_timeout {WAIT};
    keepalive_timeout {WAIT};
    lingering_timeout {WAIT};
    upstream server {{ server {SERVER_ADDR}:80; keepalive 16; }}
    proxy_http_version 1.1;
    proxy_next_upstream off;
    proxy_set_header Host $http_host;
    proxy_set_header Connection "";
    proxy_set_header User-Agent tag-$connection-$connection_requests;
    server {{
        listen {ADDR}:{STRICT};
        location / {{ proxy_pass http://server; }}
    }}
    server {{
        listen {ADDR}:{LAX};
        ignore_invalid_headers off;
        underscores_in_headers on;
        merge_slashes off;
        location / {{
            proxy_request_buffering off;
            proxy_pass http://server;
        }}
    }}
}}
"""


class Front:
    """A proxy that runs until close(). `name`: haproxy or nginx. `checks`: HAProxy asks the server
    for /, again and again."""

    def __init__(self, world, name, checks=False):
        self.world, self.name = world, name
        folder = world.scratch
        self.log = os.path.join(folder, name + ".log")
        self.errors = open(os.path.join(folder, name + ".err"), "w+", encoding="utf-8")
        config = os.path.join(folder, name + ".conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write({"haproxy": HAPROXY, "nginx": NGINX}[name].replace("@folder@", folder)
                    .replace("@check@", "check inter 100" if checks else ""))
        flag = {"haproxy": "-f", "nginx": "-c"}[name]
        with open(self.log, "w", encoding="utf-8") as output:
            self.process = world.client_popen(name, flag, config, stdin=subprocess.DEVNULL,
                                              stdout=output, stderr=self.errors)
        until(lambda: f"{name} listens\n{self.text()}", self.listens)

    def text(self):
        self.errors.seek(0)
        return self.errors.read()

    def connect(self, port):
        with inside(self.world.client_ns):
            s = socket.socket()
        s.settimeout(time_limit())
        s.connect((ADDR, port))
        return s

    def listens(self):
        """On both ports: it opens one after the other."""
        try:
            for port in (STRICT, LAX):
                self.connect(port).close()
        except ConnectionRefusedError:
            return False
        return True

    def close(self):
        """Waits until its requests have ended and are logged."""
        if self.process.poll() is None:
            gently = {"haproxy": signal.SIGUSR1, "nginx": signal.SIGQUIT}
            self.process.send_signal(gently[self.name])
            self.process.wait(time_limit())
        self.errors.close()

    def forwarded(self):
        """{tag: (status, whether the front was at fault for it, path)} of the requests that were
        forwarded, complete after close(). HAProxy may choose a server and not connect to it (-1 is
        the time that this took), or close the connection before it has sent anything."""
        found = {}
        with open(self.log, encoding="latin-1") as f:
            for line in f:
                words = line.rstrip("\n").split(" ", 4)
                if words[0].startswith("tag-") and words[1] not in ("-", "-1"):
                    assert words[0] not in found, line
                    found[words[0]] = (words[2], words[3] != "--", words[4])
        return found


# What a sample is started with, and what is replaced in it: its times, and files of the host.
# Its addresses are replaced, too: those of nightjar and of the proxy.
CHECKS = {"inter 2s": "inter 2s fastinter 100ms",  # `inter` also is the time for a connection
          "timeout connect 5s": "timeout connect 5s\n    timeout check 60s"}
SAMPLES = {
    "haproxy.cfg": (("haproxy", "-db", "-f"), CHECKS),
    "haproxy-tcp.cfg": (("haproxy", "-db", "-f"), CHECKS),
    "nginx.conf": (("nginx", "-e", "stderr", "-g", "daemon off;", "-c"),
                   {"/run/nginx.pid": "@folder@/nginx.pid",
                    "/var/log/nginx/": "@folder@/nginx-"}),
    "Caddyfile": (("caddy", "run", "--adapter", "caddyfile", "--config"),
                  {"health_interval 2s": "health_interval 100ms"}),
    "nightjar.conf": (None, {}),
}

NAME = "nightjar.test"  # of the certificate


def over_tls(name, ca):
    """What is replaced in a sample so that the proxy speaks TLS to nightjar, as docs/deploy.md
    says."""
    return {
        "haproxy.cfg": {":80 check": f":443 ssl ca-file {ca} verify required sni str({NAME}) "
                                     f"alpn http/1.1 check check-sni {NAME}"},
        "nginx.conf": {"192.0.2.10:80": "192.0.2.10:443",
                       "proxy_pass http://nightjar;":
                       "proxy_pass https://nightjar; proxy_ssl_protocols TLSv1.3; "
                       f"proxy_ssl_verify on; proxy_ssl_trusted_certificate {ca}; "
                       f"proxy_ssl_name {NAME}; proxy_ssl_server_name on;"},
        "Caddyfile": {"192.0.2.10:80 {": "https://192.0.2.10 {",
                      "transport http {": f"transport http {{\n tls_server_name {NAME}\n"
                                          f" tls_trusted_ca_certs {ca}\n"},
    }[name]


def sample(name, also=()):
    """The text of a file of examples/proxies, with what is replaced in it, `also` in addition: that
    must be in the file."""
    with open(os.path.join(REPO, "examples", "proxies", name), encoding="utf-8") as f:
        text = f.read()
    for old, new in (SAMPLES[name][1] | dict(also)).items():
        assert old in text, f"{name} has no {old}"
        text = text.replace(old, new)
    return text.replace("192.0.2.10", SERVER_ADDR).replace("192.0.2.20", CLIENT_ADDR)


class Sample:
    """A proxy that serves on port 80 of the clients' namespace until close(), with a sample.
    `also`: {text: what replaces it}."""

    def __init__(self, world, name, also=()):
        path = os.path.join(world.scratch, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(sample(name, also).replace("@folder@", world.scratch))
        self.world = world
        self.output = open(path + ".output", "w+", encoding="utf-8")
        home = {"HOME": world.scratch, "XDG_DATA_HOME": world.scratch}  # Caddy writes there
        self.process = world.client_popen(
            *SAMPLES[name][0], path, stdin=subprocess.DEVNULL, stdout=self.output,
            stderr=self.output, env=os.environ | home)
        until(lambda: f"{name} listens\n{self.text()}", self.listens)

    def text(self):
        with open(self.output.name, encoding="utf-8") as f:
            return f.read()

    def listens(self):
        with inside(self.world.client_ns):
            s = socket.socket()
        with s:
            return s.connect_ex((ADDR, 80)) == 0

    def close(self):
        self.process.terminate()
        self.process.wait(time_limit())
        self.output.close()
