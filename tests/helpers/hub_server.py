"""A server of the Hub's protocol on this machine, as `HF_ENDPOINT` takes it. Test support.

It has what huggingface_hub asks: which commit a revision is, the list of files, and each file at a
commit behind a redirect, a relative one for small files and an absolute one for weights.
"""

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest

LARGE = (".safetensors", ".bin", ".xlsx")
_API = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?")
_FILE = re.compile(r"/(?:(datasets)/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


@dataclass
class Repository:
    """Files by commit, branches, and the token that a gated one wants."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    token: str = ""

    def push(self, folder: Path | dict[str, bytes], branch: str = "main") -> str:
        """Make a commit of all files below `folder`, which `branch` is from now on."""
        files = folder
        if isinstance(folder, Path):
            paths = sorted(path for path in folder.rglob("*") if path.is_file())
            files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        assert isinstance(files, dict)
        commit = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.commits[commit] = files
        self.branches[branch] = commit
        return commit


class HubServer(ThreadingHTTPServer):
    """Repositories by name (`datasets/` before that of data), and every request that came.

    Attributes:
        breaks: names of files whose next download ends after half of them.
        pages: whatever else there is, by path.
    """

    daemon_threads = True

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.breaks: set[str] = set()
        self.pages: dict[str, bytes] = {}
        self.stopped = False
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, name: str, folder: Path | dict[str, bytes], token: str = "") -> str:
        """Put a repository of one commit there, whose hash is returned."""
        self.repositories[name] = Repository(token=token)
        return self.repositories[name].push(folder)

    def stop(self) -> None:
        """End, also for those who are connected."""
        self.stopped = True
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._reply()

    def do_GET(self) -> None:
        self._reply()

    def _reply(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if self.server.stopped:
            self.close_connection = True
            return
        self.server.asked.append((self.command, path, self.headers.get("Range", "")))
        if path in self.server.pages:
            self._send(200, self.server.pages[path])
        elif path.startswith("/cdn/"):
            _, _, name, commit, file = path.split("|", 4)
            self._file(name, commit, file)
        elif match := _API.fullmatch(path):
            kind, name, part, revision = match.groups()
            self._about(name if kind == "models" else f"datasets/{name}", part, revision or "main")
        elif match := _FILE.fullmatch(path):
            kind, name, revision, file = match.groups()
            self._redirect(f"datasets/{name}" if kind else name, revision, file)
        else:
            self._send(404, b"")

    def _commit(self, name: str, revision: str, files: bool = False) -> str:
        """Return the commit of a revision; "" where there is none, which has been answered then."""
        repository = self.server.repositories.get(name)
        key = self.headers.get("Authorization")
        commit = repository.branches.get(revision, revision) if repository else ""
        status, code = 0, ""
        if not repository:
            status, code = 401, "RepoNotFound"
        # What a gated repository is, everybody may know; only its files are kept.
        elif files and repository.token and key != f"Bearer {repository.token}":
            status, code = 403 if key else 401, "GatedRepo"
        elif commit not in repository.commits:
            status, code = 404, "RevisionNotFound"
        if code:
            self._fault(status, code)
        return "" if code else commit

    def _about(self, name: str, part: str | None, revision: str) -> None:
        commit = self._commit(name, revision)
        if not commit:
            return
        files = self.server.repositories[name].commits[commit]
        siblings = [{"rfilename": path} for path in files]
        about: Any = {"id": name.removeprefix("datasets/"), "sha": commit, "tags": []}
        about["siblings"] = siblings
        if part == "tree":
            about = [
                {"type": "file", "oid": _blob(raw), "size": len(raw), "path": path}
                for path, raw in files.items()
            ]
        self._send(200, json.dumps(about).encode())

    def _redirect(self, name: str, revision: str, file: str) -> None:
        commit = self._commit(name, revision, files=True)
        if not commit:
            return
        raw = self.server.repositories[name].commits[commit].get(file)
        if raw is None:
            self._fault(404, "EntryNotFound", {"X-Repo-Commit": commit})
            return
        target = quote(f"/cdn/||{name}|{commit}|{file}")
        large = file.endswith(LARGE)
        headers = {
            "X-Repo-Commit": commit,
            "ETag": _etag(file, raw),
            "X-Linked-Etag": _etag(file, raw),
            "X-Linked-Size": str(len(raw)),
            "Location": f"{self.server.url}{target}" if large else target,
        }
        self._send(302 if large else 307, b"", headers)

    def _file(self, name: str, commit: str, file: str) -> None:
        raw = self.server.repositories[name].commits[commit][file]
        headers = {"ETag": _etag(file, raw), "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        start = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        first = int(start[1]) if start else 0
        if start:
            headers["Content-Range"] = f"bytes {first}-{len(raw) - 1}/{len(raw)}"
        breaks = self.command == "GET" and file in self.server.breaks
        half = len(raw) // 2 if breaks else None
        self._send(206 if start else 200, raw[first:], headers, half)
        if breaks:
            self.server.breaks.remove(file)
            self.close_connection = True
            self.connection.shutdown(2)

    def _fault(self, status: int, code: str, headers: Mapping[str, str] = {}) -> None:
        self._send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": code, **headers})

    def _send(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str] = {},
        send: int | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:send])


def _etag(file: str, raw: bytes) -> str:
    return f'"{hashlib.sha256(raw).hexdigest() if file.endswith(LARGE) else _blob(raw)}"'


def _blob(raw: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw).hexdigest()


def connect(monkeypatch: pytest.MonkeyPatch, url: str, cache: Path) -> None:
    """Have huggingface_hub, which reads the environment only once, ask the server at `url`."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
