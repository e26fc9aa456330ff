"""A server of the Hub's protocol on this machine, as `HF_ENDPOINT` takes it.

It has what huggingface_hub asks: which commit a revision is, the list of files, and each file at a
commit behind a redirect.
"""

import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

_API = re.compile(r"/api/(?:models/)?((?:datasets/)?[^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?")
_FILE = re.compile(r"/((?:datasets/)?[^/]+/[^/]+)/resolve/([^/]+)/(.+)")


@dataclass
class Repository:
    """Files by commit, branches, and the token that a gated one wants."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    token: str = ""

    def push(self, files, branch="main"):
        """Make a commit of files, or of all below a folder, which `branch` is from now on."""
        if isinstance(files, Path):
            paths = sorted(path for path in files.rglob("*") if path.is_file())
            files = {path.relative_to(files).as_posix(): path.read_bytes() for path in paths}
        commit = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.commits[commit] = files
        self.branches[branch] = commit
        return commit


class HubServer(ThreadingHTTPServer):
    """Repositories by name (`datasets/` before that of data), and every request that came."""

    daemon_threads = True

    def __init__(self):
        self.repositories = {}
        self.asked = []
        self.stopped = False
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, name, files, token=""):
        """Put a repository of one commit there, whose hash is returned."""
        self.repositories[name] = Repository(token=token)
        return self.repositories[name].push(files)

    def stop(self):
        """End, also for those who are connected."""
        self.stopped = True
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        if self.server.stopped:
            self.close_connection = True
            return
        self.server.asked.append((self.command, path))
        if path.startswith("/cdn/"):
            self._file(*path.split("|", 4)[2:])
        elif match := _API.fullmatch(path):
            self._about(match[1], match[2] == "tree", match[3] or "main")
        elif match := _FILE.fullmatch(path):
            self._redirect(*match.groups())
        else:
            self._send(404, b"")

    def _commit(self, name, revision, files=False):
        """Return the commit of a revision; "" where there is none, which has been answered then."""
        repository, key = self.server.repositories.get(name), self.headers.get("Authorization")
        if not repository:
            return self._fault(401, "RepoNotFound")
        # What a gated repository is, everybody may know; only its files are kept.
        if files and repository.token and key != f"Bearer {repository.token}":
            return self._fault(403 if key else 401, "GatedRepo")
        commit = repository.branches.get(revision, revision)
        return commit if commit in repository.commits else self._fault(404, "RevisionNotFound")

    def _about(self, name, is_tree, revision):
        if not (commit := self._commit(name, revision)):
            return
        files = self.server.repositories[name].commits[commit]
        metadata = {"id": name.removeprefix("datasets/"), "sha": commit, "tags": []}
        metadata["siblings"] = [{"rfilename": path} for path in files]
        if is_tree:
            metadata = [
                {"type": "file", "oid": _tag(raw), "size": len(raw), "path": path}
                for path, raw in files.items()
            ]
        self._send(200, json.dumps(metadata).encode())

    def _redirect(self, name, revision, file):
        if not (commit := self._commit(name, revision, files=True)):
            return
        raw = self.server.repositories[name].commits[commit].get(file)
        if raw is None:
            self._fault(404, "EntryNotFound", {"X-Repo-Commit": commit})
            return
        target = self.server.url + quote(f"/cdn/||{name}|{commit}|{file}")
        headers = {"X-Repo-Commit": commit, "ETag": _tag(raw), "Location": target}
        self._send(302, b"", {**headers, "X-Linked-Size": str(len(raw))})

    def _file(self, name, commit, file):
        raw = self.server.repositories[name].commits[commit][file]
        self._send(200, raw, {"ETag": _tag(raw), "X-Repo-Commit": commit})

    def _fault(self, status, code, headers=()):
        self._send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": code, **dict(headers)})
        return ""

    def _send(self, status, body, headers=()):
        self.send_response(status)
        for name, value in {**dict(headers), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _tag(raw):
    return f'"{hashlib.sha256(raw).hexdigest()}"'


def connect(monkeypatch, url, cache):
    """Have huggingface_hub, which reads the environment only once, ask the server at `url`."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
