# SPDX-License-Identifier: BSD-3-Clause
"""A page in a headless Chromium: for page_test.py and site_test.py, and for pictures of pages.

browser.py PAGE PICTURE [WIDTH HEIGHT [SCRIPT]] writes a picture (PNG) of the page, a file or an
address, after the script.
Talks to the browser by its own protocol, through a pair of pipes.
"""
import base64
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile


def find():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
                None)


class Browser:
    """One page. A context manager."""

    def __init__(self, path, width=1400, height=900):
        self.address = path if "://" in str(path) else pathlib.Path(path).resolve().as_uri()
        self.size = (width, height)
        self.numbers = itertools.count(1)
        self.requests = []  # what the page asked for

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()

        def wire():  # the browser reads from 3 and writes to 4
            os.dup2(to_read, 10)
            os.dup2(to_write, 11)
            os.dup2(10, 3)
            os.dup2(11, 4)
        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", f"--user-data-dir={self.folder}", "--remote-debugging-pipe"],
            preexec_fn=wire, close_fds=False, start_new_session=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.left = b""
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"]
        self.call("Network.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=self.size[0], height=self.size[1],
                  deviceScaleFactor=1, mobile=False)
        self.call("Page.enable")
        self.call("Page.navigate", url=self.address)
        self.until("Page.loadEventFired")
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)  # and its children
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self):
        while b"\0" not in self.left:
            more = os.read(self.back, 1 << 20)
            if not more:
                raise RuntimeError("the browser has gone")
            self.left += more
        text, self.left = self.left.split(b"\0", 1)
        message = json.loads(text)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message

    def until(self, method):
        while self.message().get("method") != method:
            pass

    def call(self, method, **parameters):
        number = next(self.numbers)
        command = {"id": number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.to, json.dumps(command).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def run(self, script):
        """The value of an expression, which may be a promise."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))


def main(page, picture, width=1400, height=900, script="0"):
    with Browser(page, int(width), int(height)) as browser:
        browser.run("typeof started === \"undefined\" || started")
        browser.run(script)
        browser.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")
        browser.picture(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
