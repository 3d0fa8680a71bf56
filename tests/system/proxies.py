"""nginx, HAProxy and Envoy before a server of ours, each as its own documentation says for gRPC."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

LIMIT_S = 20.0

NGINX = """
daemon off; master_process off; pid {place}/nginx.pid; error_log {place}/error.log;
events {{ }}
http {{
  access_log off; client_body_temp_path {place}/b; proxy_temp_path {place}/p; fastcgi_temp_path {place}/f;
  uwsgi_temp_path {place}/u; scgi_temp_path {place}/s; client_max_body_size 0; grpc_read_timeout 60s;
  server {{
    listen 127.0.0.1:{port} http2;
    location / {{ grpc_pass grpc://{upstream}; }}
  }}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen grpc
  bind 127.0.0.1:{port} proto h2
  server ours {upstream} proto h2
"""


def nginx(place: Path, port: int, upstream: str) -> list[str]:
    path = place / "nginx.conf"
    path.write_text(NGINX.format(place=place, port=port, upstream=upstream))
    return ["-p", str(place), "-c", str(path), "-e", str(place / "error.log")]


def haproxy(place: Path, port: int, upstream: str) -> list[str]:
    path = place / "haproxy.cfg"
    path.write_text(HAPROXY.format(port=port, upstream=upstream))
    return ["-db", "-f", str(path)]


def envoy(place: Path, port: int, upstream: str) -> list[str]:
    host, _, upstream_port = upstream.rpartition(":")
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3"
        ".HttpConnectionManager",
        "stat_prefix": "grpc",
        "codec_type": "HTTP2",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [
                        {
                            "match": {"prefix": "/"},
                            "route": {"cluster": "ours", "timeout": "0s"},
                        }
                    ],
                }
            ]
        },
        "http_filters": [
            {
                "name": "router",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
                },
            }
        ],
    }
    options = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    cluster = {
        "name": "ours",
        "connect_timeout": "5s",
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": options,
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
        "load_assignment": {
            "cluster_name": "ours",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _at(host, upstream_port)}}]}],
        },
    }
    listener = {
        "address": _at("127.0.0.1", str(port)),
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
    path = place / "envoy.json"
    path.write_text(
        json.dumps({"static_resources": {"listeners": [listener], "clusters": [cluster]}})
    )
    quiet = ["--log-level", "error", "--disable-hot-restart", "--concurrency", "1"]
    return ["-c", str(path), *quiet]


def _at(host: str, port: str) -> dict[str, object]:
    return {"socket_address": {"address": host, "port_value": int(port)}}


PROXIES: dict[str, Callable[[Path, int, str], list[str]]] = {
    "nginx": nginx,
    "haproxy": haproxy,
    "envoy": envoy,
}


def program_of(name: str) -> str | None:
    """Where it is installed (`make proxies`); a wheel's program lies beside the interpreter."""
    beside = Path(sys.executable).parent / name
    return (
        str(beside) if beside.exists() else shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def running(name: str, place: Path, upstream: str) -> AsyncIterator[str]:
    """The proxy's address."""
    program, port = program_of(name), free_port()
    assert program is not None
    with (place / "output.log").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            program, *PROXIES[name](place, port, upstream), stdout=output, stderr=output
        )
    try:
        await _listening(process, port, place)
        yield f"127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _listening(process: asyncio.subprocess.Process, port: int, place: Path) -> None:
    async with asyncio.timeout(LIMIT_S):
        while True:
            assert process.returncode is None, (place / "output.log").read_text()
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return
