"""A fleet on a map: a page in your browser shows where each vehicle was last, and moves it as soon as it says so.

python examples/fleet_map.py --subject bus --type position
utuple replay buses.csv.gz --speed 60      # for example: a recording, played into the space
"""

from __future__ import annotations

import argparse
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import utuple.blocking
from utuple import latest_per_address

PAGE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Fleet</title>
<style>html, body, svg { height: 100%; width: 100%; margin: 0; background: #10141f } text { fill: #9aa4bd } circle { fill: #5b8cff }</style>
<svg role="img" aria-label="Where each vehicle was last"></svg>
<script>
const svg = document.querySelector("svg"), make = (tag) => svg.appendChild(document.createElementNS(svg.namespaceURI, tag));
async function look() {
  const fleet = Object.entries(await (await fetch("/fleet.json")).json());
  const lats = fleet.map(([, [lat]]) => lat), lons = fleet.map(([, [, lon]]) => lon);
  const [south, west, north, east] = [Math.min(...lats), Math.min(...lons), Math.max(...lats), Math.max(...lons)];
  const size = Math.max(north - south, east - west, 0.001), { clientWidth: width, clientHeight: height } = svg, scale = 0.8 * Math.min(width, height) / size;
  svg.replaceChildren();
  for (const [name, [lat, lon]] of fleet) {
    const x = width / 2 + (lon - (west + east) / 2) * scale, y = height / 2 - (lat - (south + north) / 2) * scale;
    const dot = make("circle"), label = make("text");
    for (const [key, value] of Object.entries({ cx: x, cy: y, r: 5 })) dot.setAttribute(key, value);
    for (const [key, value] of Object.entries({ x: x + 8, y: y + 4, "font-size": 11 })) label.setAttribute(key, value);
    label.textContent = name;
  }
}
setInterval(look, 1000); look();
</script>"""

Fleet = dict[str, tuple[float, float]]


def served(fleet: Fleet, port: int) -> ThreadingHTTPServer:
    """The page, and the fleet as it is now, on this machine only."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_fleet = self.path == "/fleet.json"
            body = json.dumps(dict(fleet)).encode() if is_fleet else PAGE
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if is_fleet else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quietly."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main(at: str, subject: str, type_: str, port: int) -> None:
    fleet: Fleet = {}
    server = served(fleet, port)
    print(f"the fleet is at http://127.0.0.1:{server.server_port}/", flush=True)
    with utuple.blocking.connect(at) as space:
        vehicles = space.watch(
            subject=subject, type=type_, reader="fleet-map", absent=latest_per_address()
        )
        with vehicles as events:
            for event in events:
                if event.position is not None:
                    fleet[event.address] = (event.position[0], event.position[1])
                event.ack()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--at", default="127.0.0.1:7400")
    options.add_argument("--subject", default="bus")
    options.add_argument("--type", default="position")
    options.add_argument("--port", type=int, default=8000)
    given = options.parse_args()
    main(given.at, given.subject, given.type, given.port)
