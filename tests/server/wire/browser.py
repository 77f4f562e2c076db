"""Chromium without a window, driven over a pipe by the DevTools protocol; standard library only."""

import base64
import json
import os
import select
import shlex
import shutil
import struct
import subprocess
import tempfile
import time
import zlib

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One tab. `evaluate` runs JavaScript in it, `events` holds what the browser reported."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        from_us, self.to_browser = os.pipe()
        self.from_browser, to_us = os.pipe()
        words = [
            PROGRAM, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}",
            "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--force-color-profile=srgb", "--hide-scrollbars", "about:blank",
        ]
        # The protocol's ends are descriptors 3 and 4.
        command = f"exec {shlex.join(words)} 3<&{from_us} 4>&{to_us}"
        self.process = subprocess.Popen(
            ["bash", "-c", command], pass_fds=(from_us, to_us), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self.folder.name},
        )
        os.close(from_us)
        os.close(to_us)
        self.waiting = b""
        self.number = 0
        self.session = None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        self.folder.cleanup()

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def read(self, seconds=60):
        end = time.monotonic() + seconds
        while b"\0" not in self.waiting:
            if not select.select([self.from_browser], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser is silent")
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise RuntimeError("the browser ended")
            self.waiting += piece
        message, self.waiting = self.waiting.split(b"\0", 1)
        return json.loads(message)

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not self.evaluate(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"it did not come to be: {condition}")
            time.sleep(0.05)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key, code=0, text=None, modifiers=0):
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=modifiers,
                      windowsVirtualKeyCode=code, **more)

    def resize(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=phone)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot_png(self):
        """The tab as the bytes of a PNG file."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def screenshot(self):
        return Picture(self.screenshot_png())


class Picture:
    """A PNG of 8-bit RGB or RGBA, decoded."""

    def __init__(self, png):
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        data, at = b"", 8
        while at < len(png):
            size, kind = struct.unpack(">I4s", png[at : at + 8])
            part = png[at + 8 : at + 8 + size]
            if kind == b"IHDR":
                self.width, self.height, depth, colour = struct.unpack(">IIBB", part[:10])
                assert depth == 8 and colour in (2, 6)
                self.channels = 3 if colour == 2 else 4
            elif kind == b"IDAT":
                data += part
            at += size + 12
        self.rows = list(self.unfiltered(zlib.decompress(data)))

    def unfiltered(self, data):
        step, size = self.channels, self.width * self.channels
        above = bytes(size)
        for y in range(self.height):
            kind, row = data[y * (size + 1)], bytearray(data[y * (size + 1) + 1 : (y + 1) * (size + 1)])
            for x in range(size):
                left = row[x - step] if x >= step else 0
                up = above[x]
                corner = above[x - step] if x >= step else 0
                if kind == 1:
                    row[x] = (row[x] + left) & 255
                elif kind == 2:
                    row[x] = (row[x] + up) & 255
                elif kind == 3:
                    row[x] = (row[x] + (left + up) // 2) & 255
                elif kind == 4:
                    guess = left + up - corner
                    near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
                    row[x] = (row[x] + near[2]) & 255
            above = bytes(row)
            yield above

    def colours(self):
        step = self.channels
        return {row[x : x + 3] for row in self.rows for x in range(0, len(row), step)}

    def brightness(self):
        """The mean of all channels, 0 to 255."""
        return sum(sum(row[c :: self.channels]) for row in self.rows for c in range(3)) / (3 * self.width * self.height)
