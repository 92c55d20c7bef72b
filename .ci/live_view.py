"""The live view in a real browser, driven by the WebDriver protocol over plain HTTP.

    live_view.py path/to/regretta [--shots DIR]

needs Debian's chromium and chromium-driver. Runs a study of some 20 s with --open, opens the printed link in
headless Chromium, reads from the page how progress grows, verdicts fall and the study ends, at the width of a
phone and of a desk, and fails on any error in the console or anything wider than the screen.
"""

import argparse
import base64
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

PATIENCE = 120
SIZES = {"phone": (390, 844), "desk": (1440, 900)}
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]
STUDY = """
[study]
name = "live-view"
seed = 2018
replicates = 30000

[prior]
domain = { kind = "grid", points = 80, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.1 }
noise_variance = 0.01

[grid]
N = [100, 200, 400, 800]
T = [1, 5, 20, 50]
delta = [0.1]
design = ["fixed", "adaptive"]
method = ["pem-bo", "random"]

[claims]
test = ["lemma1.*", "theorem2.*"]
"""
READ = """
const text = (id) => document.getElementById(id).textContent;
return {
  name: text("name"), state: text("state"), connection: text("connection"),
  share: document.getElementById("whole").value,
  refuted: Number(text("refuted").replace(/,/g, "")), confirmed: Number(text("confirmed").replace(/,/g, "")),
  feed: document.querySelectorAll("#feed li").length,
  panels: [...document.querySelectorAll("#panels img")].filter((image) => image.naturalWidth > 0).length,
  cells: [...document.querySelectorAll("#cells progress")].map((bar) => bar.value / bar.max),
  workers: document.querySelectorAll("#workers tr").length,
  points: document.getElementById("line").points.numberOfItems,
  ending: document.getElementById("ending").hidden ? "" : text("ending-text"),
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  scheme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
};
"""


class Browser:
    """A session of a WebDriver."""

    def __init__(self, port, profile):
        self.base = f"http://127.0.0.1:{port}"
        options = {"args": [*FLAGS, f"--user-data-dir={profile}"], "binary": "/usr/bin/chromium"}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL"}}
        session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.base += f"/session/{session['sessionId']}"

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{method} {path}: {error.read().decode()}") from error

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script):
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                      mobile=width < 600)

    def scheme(self, name):
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def shot(self, path):
        image = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(image["data"]))

    def complaints(self):
        log = self.call("POST", "/se/log", {"type": "browser"})
        return [entry for entry in log if entry["level"] in ("SEVERE", "WARNING")]

    def quit(self):
        self.call("DELETE", "")


def until(what, found):
    began = time.monotonic()
    while True:
        value = found()
        if value:
            return value
        if time.monotonic() - began > PATIENCE:
            raise SystemExit(f"waited in vain: {what}")
        time.sleep(0.1)


def printed(process, pattern):
    for line in process.stderr:
        match = re.search(pattern, line)
        if match:
            return match.group(1)
    raise SystemExit("the run ended without a link")


def driver(folder):
    log = folder / "driver.log"
    with log.open("w") as out:
        process = subprocess.Popen(["chromedriver", "--port=0"], stdout=out, stderr=subprocess.STDOUT)
    started = re.compile(r"started successfully on port (\d+)")
    port = until("chromedriver listens", lambda: started.search(log.read_text()))
    return process, int(port.group(1))


def look(browser, shots, name):
    """Both widths, both schemes of colour; nothing may be wider than the screen."""
    for size, (width, height) in SIZES.items():
        browser.resize(width, height)
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            page = browser.run(READ)
            assert page["scheme"] == scheme and page["wide"] <= 0, (size, page)
            if shots:
                browser.shot(shots / f"{name}-{size}-{scheme}.png")
    browser.scheme("light")
    return browser.run(READ)


def watch(browser, link, out, shots):
    browser.open(link)
    first = until("the study shows", lambda: next((p for p in [browser.run(READ)] if p["workers"]), None))
    assert first["name"] == "live-view", first
    assert first["state"] == "running" and first["connection"] == "live", first
    middle = until("progress grows and verdicts fall", lambda: next(
        (p for p in [browser.run(READ)]
         if p["share"] > max(first["share"], 0.3) and p["refuted"] and p["confirmed"] and p["feed"] and p["panels"]),
        None))
    assert middle["state"] == "running", "the study was over before it was looked at"
    look(browser, shots, "middle")
    last = until("the study ends", lambda: next((p for p in [browser.run(READ)] if p["ending"]), None))
    assert last["state"] == "done" and last["connection"] == "ended", last
    assert last["ending"].endswith(str(out / "report.html")), last
    assert last["share"] == 1 and all(share == 1 for share in last["cells"]), last
    assert last["refuted"] >= middle["refuted"] and last["feed"] >= middle["feed"] and last["points"] > 4, last
    look(browser, shots, "end")
    assert browser.run(READ)["connection"] == "ended"
    return middle, last


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("binary", type=Path)
    arguments.add_argument("--shots", type=Path)
    given = arguments.parse_args()
    if given.shots:
        given.shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder).resolve()
        (folder / "study.toml").write_text(STUDY)
        service, port = driver(folder)
        browser = run = None
        try:
            # First the browser, which may take as long to start as the study to run.
            browser = Browser(port, folder / "profile")
            browser.open("about:blank")
            run = subprocess.Popen(
                [given.binary.resolve(), "run", "study.toml", "--out", "out", "--open", "--json"],
                cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            link = printed(run, r"live view at (\S+)")
            middle, last = watch(browser, link, folder / "out", given.shots)
            report = json.loads(run.communicate(timeout=PATIENCE)[0])
            assert run.returncode == 0 and report["refuted"] >= last["refuted"], (report, last)
            # A picture that was asked for as the run ended finds nobody: what is wrong otherwise is refused by nobody.
            complaints = [said for said in browser.complaints() if not re.search("ERR_(CONNECTION|EMPTY|INCOMPLETE)_", str(said))]
            assert not complaints, complaints
        finally:
            if browser:
                browser.quit()
            service.terminate()
            service.wait()
            if run and run.poll() is None:
                run.kill()
                run.wait()
    print(f"the live view: {middle['refuted']} rows refuted at {middle['share']:.0%}, {last['refuted']} at the end, "
          f"{last['confirmed']} confirmed; {last['panels']} panels, {last['feed']} verdicts in the feed")


if __name__ == "__main__":
    sys.exit(main())
