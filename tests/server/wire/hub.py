"""A stand-in for Hugging Face's hub on loopback, as far as `hf download` asks: repositories are folders
of files by commit, with refs."""

import hashlib
import http.server
import json
import re
import threading
import urllib.parse


class Hub:
    """repositories: {"Org/Name": {"refs": {"main": COMMIT}, "commits": {COMMIT: {FILE: bytes}}}}"""

    def __init__(self, repositories):
        self.repositories = repositories
        self.requests = []  # (method, path, Authorization or None)
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                hub.answer(self, True)

            def do_HEAD(self):
                hub.answer(self, False)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def answer(self, handler, has_body):
        path = urllib.parse.unquote(urllib.parse.urlsplit(handler.path).path)
        self.requests.append((handler.command, path, handler.headers.get("Authorization")))
        status, headers, body = self.reply_to(path)
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if has_body:
            handler.wfile.write(body)

    def reply_to(self, path):
        asked = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path)
        if asked:
            return self.describe(asked.group(1), asked.group(2) or "main")
        asked = re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/(.+)", path)
        if asked:
            return self.tree(*asked.groups())
        asked = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if asked:
            return self.file(*asked.groups())
        return 404, {"X-Error-Code": "EntryNotFound"}, b""

    def commit_of(self, name, revision):
        repository = self.repositories.get(name)
        if repository is None:
            return None
        commit = repository["refs"].get(revision, revision)
        return commit if commit in repository["commits"] else None

    def describe(self, name, revision):
        if name not in self.repositories:
            return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
        commit = self.commit_of(name, revision)
        if commit is None:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
        files = self.repositories[name]["commits"][commit]
        body = {
            "_id": "0", "id": name, "modelId": name, "private": False, "gated": False, "disabled": False,
            "downloads": 0, "likes": 0, "tags": [], "sha": commit,
            "siblings": [{"rfilename": file} for file in sorted(files)],
        }
        return 200, {"Content-Type": "application/json", "X-Repo-Commit": commit}, json.dumps(body).encode()

    def tree(self, name, revision):
        commit = self.commit_of(name, revision)
        if commit is None:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
        files = self.repositories[name]["commits"][commit]
        body = [{"type": "file", "oid": hashlib.sha1(content).hexdigest(), "size": len(content), "path": file}
                for file, content in sorted(files.items())]
        return 200, {"Content-Type": "application/json", "X-Repo-Commit": commit}, json.dumps(body).encode()

    def file(self, name, revision, file):
        commit = self.commit_of(name, revision)
        if commit is None:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        content = self.repositories[name]["commits"][commit].get(file)
        if content is None:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b""
        etag = hashlib.sha256(content).hexdigest()
        return 200, {"X-Repo-Commit": commit, "ETag": f'"{etag}"', "Content-Type": "application/octet-stream"}, content
