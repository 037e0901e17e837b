"""A static host on this machine, for measuring pages: it compresses text, as hosts do."""

import functools
import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMPRESSED = (".html", ".css", ".js", ".mjs", ".json", ".svg", ".txt", ".xml")
TYPES = {".mjs": "text/javascript", ".js": "text/javascript", ".woff2": "font/woff2"}


@dataclass
class Host:
    """address: with a slash at the end; sent: (path, bytes of the body) of every answer so far."""

    address: str = ""
    sent: list[tuple[str, int]] = field(default_factory=list)

    @property
    def sent_bytes(self) -> int:
        return sum(size for _, size in self.sent)


class _Handler(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | TYPES
    protocol_version = "HTTP/1.1"

    def __init__(self, *args, host: Host, **kwargs) -> None:
        self.host = host
        super().__init__(*args, **kwargs)

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if path.is_dir() and not self.path.partition("?")[0].endswith("/"):
            super().do_GET()  # redirects
            return
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        packed = path.suffix in COMPRESSED
        data = _packed(path) if packed else path.read_bytes()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "max-age=600")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(data)
        self.host.sent.append((self.path, len(data)))


@functools.cache
def _packed(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), 6)


@contextmanager
def served(folder: Path) -> Iterator[Host]:
    """Serve the folder, and count what is sent."""
    host = Host()
    handler = functools.partial(_Handler, directory=str(folder), host=host)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host.address = f"http://127.0.0.1:{server.server_port}/"
        yield host
        server.shutdown()
