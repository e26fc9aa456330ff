"""A server of the Hub's protocol on this machine, as `HF_ENDPOINT` takes it.

It has what huggingface_hub asks: which commit a revision is, the list of files, and each file.
"""

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

API = re.compile(r"/api/(?:models/)?((?:datasets/)?[^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?")
FILE = re.compile(r"/((?:datasets/)?[^/]+/[^/]+)/(resolve)/([^/]+)/(.+)")


class HubServer(ThreadingHTTPServer):
    """Repositories by name (`datasets/` before that of data), and every request that came."""

    daemon_threads = True

    def __init__(self):
        self.revisions, self.tokens, self.asked = {}, {}, []
        self.stopped = False
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def add(self, name, files, branch="main", token=""):
        """Make a commit of files, or of all below a folder, which `branch` is from now on.

        Its hash is returned; with a `token`, the repository is gated.
        """
        if isinstance(files, Path):
            paths = sorted(path for path in files.rglob("*") if path.is_file())
            files = {path.relative_to(files).as_posix(): path.read_bytes() for path in paths}
        commit = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        for revision in (commit, branch):
            self.revisions[name, revision] = commit, files
        self.tokens[name] = token
        return commit

    def stop(self):
        """End, also for those who are connected."""
        self.stopped = True
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        if self.server.stopped:
            self.close_connection = True
            return None
        self.server.asked.append((self.command, path))
        match = API.fullmatch(path) or FILE.fullmatch(path)
        if not match:
            return self.send(404)
        name, kind, revision, *file = match.groups()
        known = self.server.revisions.get((name, revision or "main"))
        token, key = self.server.tokens.get(name), self.headers.get("Authorization")
        if token is None:
            return self.send(401, code="RepoNotFound")
        # What a gated repository is, everybody may know; only its files are kept.
        if file and token and key != f"Bearer {token}":
            return self.send(403 if key else 401, code="GatedRepo")
        if not known:
            return self.send(404, code="RevisionNotFound")
        commit, files = known
        if file and file[0] not in files:
            return self.send(404, code="EntryNotFound", commit=commit)
        if file:
            return self.send(200, files[file[0]], commit=commit)
        listed = [
            {"type": "file", "oid": tag(raw), "size": len(raw), "path": path, "rfilename": path}
            for path, raw in files.items()
        ]
        metadata = {"id": name.removeprefix("datasets/"), "sha": commit, "siblings": listed}
        return self.send(200, json.dumps(listed if kind == "tree" else metadata).encode())

    def send(self, status, body=b"", code="", commit=""):
        headers = {"ETag": tag(body), "Content-Length": str(len(body)), "X-Repo-Commit": commit}
        self.send_response(status)
        for name, value in {**headers, "X-Error-Code": code, "X-Error-Message": code}.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def tag(raw):
    return f'"{hashlib.sha256(raw).hexdigest()}"'


def connect(monkeypatch, url, cache):
    """Have huggingface_hub, which reads the environment only once, ask the server at `url`."""
    from huggingface_hub import constants

    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    changes = {"ENDPOINT": url, "HUGGINGFACE_CO_URL_TEMPLATE": template}
    for name, value in {**changes, "HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": False}.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.delenv("HF_TOKEN", raising=False)
