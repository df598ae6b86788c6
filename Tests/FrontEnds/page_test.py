#!/usr/bin/env python3
"""Tests the web page of the service in headless Chromium.

Needs selenium (pip install selenium), Chromium and chromedriver, a running service with its page, and segdl-origin:

  page_test.py --page http://127.0.0.1:8300/ --secret SECRET --origin http://127.0.0.1:8200 \\
      --kill 'kill -9 …' --start 'segdl daemon …'

The service's queue and history are emptied. Prints one line per check, and exits with 1 if one fails.
"""

import argparse
import json
import subprocess
import sys
import time
import traceback
import urllib.parse
import urllib.request

from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

RUN = format(int(time.time()) % 0xFFFFFF, "x")  # Part of each file name, so that no earlier file is in the way.
ATTACK = "<img src=x onerror=window.canary=1;alert(1)>"
BIDI = "\u202ecod.\u2066exe"
BIDI_SHOWN = "\\u{202E}cod.\\u{2066}exe"
# The service makes the name of a file safe, as it does with names from servers.
BIDI_SAFE = "_cod._exe"

# The texts whose contrast with their background is below 4.5, as [ratio, text, color, background].
CONTRAST = r"""
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgba = (text) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const background = (element) => {
  const layers = [];
  for (let e = element; e; e = e.parentElement) {
    layers.push(rgba(getComputedStyle(e).backgroundColor));
    if (layers.at(-1)[3] === 1) break;
  }
  const page = matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18, 1] : [255, 255, 255, 1];
  return layers.reduceRight((below, top) => over(top, below), page);
};
const luminance = (c) => {
  const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const bad = [];
let number = 0;
const check = (element, color, text) => {
  number++;
  const below = background(element);
  const [a, b] = [luminance(over(rgba(color), below)), luminance(below)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) bad.push([ratio.toFixed(2), text.slice(0, 40), color, below.join(' ')]);
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  const text = walker.currentNode.data.trim();
  if (text && element.checkVisibility({visibilityProperty: true})) check(element, getComputedStyle(element).color, text);
}
for (const field of document.querySelectorAll('input, textarea, select')) {
  if (!field.checkVisibility()) continue;
  check(field, getComputedStyle(field).color, field.value || 'value of ' + field.id);
  if (field.placeholder) check(field, getComputedStyle(field, '::placeholder').color, field.placeholder);
}
return {bad, number};
"""

NAMES = r"""
const text = (ids) => (ids ?? '').split(' ').map((id) => document.getElementById(id)?.textContent ?? '').join('').trim();
const name = (e) => e.ariaLabel?.trim() || text(e.getAttribute('aria-labelledby'));
const isNamed = (e) => name(e) || [...(e.labels ?? [])].some((label) => label.textContent.trim());
const fields = [...document.querySelectorAll('input, select, textarea')];
const buttons = [...document.querySelectorAll('button, a, [role=button], summary')].filter((e) => e.id !== 'confirm-yes' || e.checkVisibility());
const regions = [...document.querySelectorAll('dialog[open], nav, [role=grid], [role=img], [role=region], canvas')];
return {number: fields.length + buttons.length + regions.length, bad: [
  ...fields.filter((e) => !isNamed(e)), ...buttons.filter((e) => !name(e) && !e.textContent.trim()), ...regions.filter((e) => !name(e)),
].map((e) => e.outerHTML.slice(0, 120))};
"""

# What a screen reader needs to find its way: one heading of level 1, landmarks around all texts, IDs that are unique and
# exist, and an element that has the focus only if it can be seen.
STRUCTURE = r"""
const visible = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility());
const bad = [];
const expect = (isGood, text) => isGood || bad.push(text);
const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
expect(new Set(ids).size === ids.length, 'IDs that are not unique: ' + ids.filter((id, index) => ids.indexOf(id) !== index));
for (const name of ['aria-labelledby', 'aria-describedby', 'aria-activedescendant', 'for']) {
  for (const e of document.querySelectorAll(`[${name}]`)) {
    for (const id of e.getAttribute(name).split(' ')) expect(ids.includes(id), `${name} of ${e.id || e.tagName} names no element`);
  }
}
expect(document.documentElement.lang && document.title, 'no language or title');
expect(visible('h1').length === 1, visible('h1').length + ' headings of level 1');
expect(visible('main').length === 1, visible('main').length + ' main landmarks');
const dialog = document.querySelector('dialog[open]');
const levels = visible('h1, h2, h3, h4, h5, h6').filter((e) => !dialog || dialog.contains(e)).map((e) => +e.tagName[1]);
levels.forEach((level, index) =>
  expect(level <= (levels[index - 1] ?? 1 + !!dialog) + 1, 'a heading of level ' + level + ' after ' + levels[index - 1]));
const landmarks = 'main, header, nav, footer, aside, dialog, [role=region], [role=alert], [role=status], .skip';
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const { parentElement: e, data } = walker.currentNode;
  if (data.trim() && e.checkVisibility({visibilityProperty: true})) expect(e.closest(landmarks), 'outside of the landmarks: ' + data);
}
for (const e of visible('[tabindex]')) expect(e.tabIndex <= 0, 'an order of its own: ' + e.id);
for (const e of visible('[role=row]')) {
  expect(e.closest('[role=grid]') && e.querySelector('[role=gridcell], [role=columnheader]'), 'a row without grid or cells');
}
expect(visible('[role=grid] [role=row]').every((e) => e.ariaRowIndex), 'rows without numbers');
return bad;
"""


class PageTest:
    def __init__(self, arguments):
        self.arguments = arguments
        self.failures = 0
        options = webdriver.ChromeOptions()
        options.binary_location = arguments.chromium
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en-US"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.set_capability("unhandledPromptBehavior", "ignore")
        self.driver = webdriver.Chrome(options=options, service=Service(arguments.chromedriver))
        self.log = []
        self.resize(1280, 800)

    # Tools

    def resize(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def scheme(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def wait(self, condition, what, seconds=30):
        def attempt(_):
            try:
                return condition()
            except StaleElementReferenceException:
                return None

        return WebDriverWait(self.driver, seconds, 0.1).until(attempt, message=what)

    def id(self, name):
        return self.driver.find_element(By.ID, name)

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def api(self, path, body=None):
        request = urllib.request.Request(
            urllib.parse.urljoin(self.arguments.page, "/v1" + path),
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.arguments.secret}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def url(self, path):
        return f"{self.arguments.origin.rstrip('/')}/{path}"

    def clear(self):
        self.api("/downloads/cancel", {"all": True, "delete": True})
        self.wait(lambda: not self.api("/downloads")["downloads"], "an empty queue")
        self.api("/downloads/remove", {"all": True})

    def row(self, text):
        """The row whose name contains the text."""
        return self.js(
            "return [...document.querySelectorAll('#grid-body [role=row]')]"
            ".find((row) => row.querySelector('.title').textContent.includes(arguments[0])) ?? null", text)

    def state(self, text):
        row = self.row(text)
        return row.find_element(By.CSS_SELECTOR, ".state").text if row else None

    def select(self, text):
        self.wait(lambda: self.row(text), f"a row {text}")
        self.row(text).find_element(By.CSS_SELECTOR, ".percent, .bar").click()
        self.wait(lambda: self.row(text).get_attribute("aria-selected") == "true", "a selected row")

    def view(self, name):
        self.driver.find_element(By.CSS_SELECTOR, f"#open-{name}").click()

    def add(self, urls, paused=False, **fields):
        """Adds through the page's dialog."""
        self.id("add").click()
        self.wait(lambda: self.id("add-dialog").get_attribute("open") is not None, "the dialog")
        self.id("urls").send_keys(urls)
        for name, value in fields.items():
            # Characters outside of the basic plane and controls cannot be typed.
            self.js("arguments[0].value = arguments[1]", self.id(name), value)
        if self.id("add-paused").is_selected() != paused:
            self.id("add-paused").click()
        self.id("add-button").click()
        self.wait(lambda: self.id("add-dialog").get_attribute("open") is None, "the dialog closes")

    def ended(self, text, outcome="Completed"):
        """Whether the history shows the file with this outcome."""
        return self.js(
            "return [...document.querySelectorAll('#history-rows tr')].some((row) =>"
            " row.textContent.includes(arguments[0]) && row.cells[1].textContent.startsWith(arguments[1]))", text, outcome)

    def run(self, command):
        subprocess.run(command, shell=True, check=True, timeout=60)

    def assert_no_script_ran(self):
        try:
            text = self.driver.switch_to.alert.text
            raise AssertionError(f"an alert is open: {text}")
        except NoAlertPresentException:
            pass
        assert self.js("return window.canary === undefined"), "the canary is set"
        assert self.js("return document.querySelectorAll('img, iframe, svg, script:not([src])').length") == 0, "foreign elements"

    def contrast(self, where):
        for scheme in ("light", "dark"):
            self.scheme(scheme)
            found = self.js(CONTRAST)
            assert found["number"] > 3, f"{where}: too few texts"
            assert not found["bad"], f"{where}, {scheme}: {found['bad'][:5]}"
        self.scheme("light")

    def names(self, where):
        found = self.js(NAMES)
        assert found["number"] > 10, where
        assert not found["bad"], f"{where}: {found['bad'][:5]}"
        self.structure(where)

    def structure(self, where):
        bad = self.js(STRUCTURE)
        assert not bad, f"{where}: {bad[:5]}"

    def served(self):
        """The names at the ends of the queue's URLs, in its order."""
        return [entry["url"].split("?")[0].rsplit("/")[-1] for entry in self.api("/downloads")["downloads"]]

    def submit(self, paused=True, first=False):
        """Adds what the dialog has."""
        for name, value in (("add-paused", paused), ("add-first", first)):
            if self.id(name).is_selected() != value:
                self.id(name).click()
        self.id("add-button").click()

    def fill(self, number):
        """Empties the queue, and adds files that are paused."""
        self.clear()
        self.api("/downloads", {"paused": True, "downloads": [{"url": self.url(f"1M/many-{i:04}.bin")} for i in range(number)]})
        self.wait(lambda: self.id("grid").get_attribute("aria-rowcount") == str(number + 1), "all rows")

    def closed(self, what):
        self.wait(lambda: self.id("add-dialog").get_attribute("open") is None, what, 120)

    # Checks, in this order

    def check_wrong_secret_is_refused(self):
        self.driver.get(self.arguments.page)
        self.wait(lambda: self.id("secret").is_displayed(), "the form")
        self.contrast("sign-in")
        self.structure("sign-in")
        self.id("secret").send_keys("not the secret", Keys.ENTER)
        self.wait(lambda: "wrong" in self.id("sign-in-error").text, "the refusal")
        self.id("secret").send_keys("wrong" + self.arguments.secret, Keys.ENTER)
        self.wait(lambda: self.id("secret").get_attribute("value") == "" and "wrong" in self.id("sign-in-error").text, "the refusal")
        assert not self.id("app").is_displayed()

    def check_secret_signs_in(self):
        self.id("secret").send_keys(self.arguments.secret, Keys.ENTER)
        self.wait(lambda: self.id("connection-text").text == "Connected", "the connection")

    def check_secret_in_the_address_signs_in_and_is_removed(self):
        self.id("sign-out").click()
        self.wait(lambda: self.id("secret").is_displayed(), "the form")
        self.driver.get("about:blank")
        self.driver.get(self.arguments.page + "#secret=" + urllib.parse.quote(self.arguments.secret))
        self.wait(lambda: self.id("connection-text").text == "Connected", "the connection")
        assert "secret" not in self.driver.current_url, self.driver.current_url
        self.driver.refresh()
        self.wait(lambda: self.id("connection-text").text == "Connected", "the connection after a reload")

    def check_added_file_completes(self):
        name = f"small-{RUN}.bin"
        self.add(self.url(f"4M/{name}?rate=2M"))
        self.wait(lambda: f"{name} completed" in self.id("notice").text, "the announcement")
        self.view("history")
        self.wait(lambda: self.ended(name), "the history")
        self.view("queue")

    def check_wrong_checksum_is_an_error_with_a_remedy(self):
        name = f"sum-{RUN}.bin"
        self.add(self.url("1M/x.bin"), out=name, checksum="sha256=" + "0" * 64)
        self.wait(lambda: self.state(name) == "Failed", "the failure")
        text = self.row(name).find_element(By.CSS_SELECTOR, ".sub").text
        assert "sha256" in text.lower() or "checksum" in text.lower() or "digest" in text.lower(), text
        error = next(e["error"] for e in self.api("/downloads")["downloads"] if e["path"].endswith(name))
        for width in (1280, 320):
            self.resize(width, 640)
            remedy = self.row(name).find_element(By.CSS_SELECTOR, ".remedy")
            assert remedy.is_displayed() and error.get("hint", "") in remedy.text and len(remedy.text) > 10, remedy.text
            inside = "const [a, b] = [...arguments].map((e) => e.getBoundingClientRect()); return a.right <= b.right && a.bottom <= b.bottom"
            assert self.js(inside, remedy, self.row(name)), f"the remedy is cut off at {width} px"
            self.contrast(f"a failed row at {width} px")
        self.resize(1280, 800)

    def check_refused_request_is_shown_in_the_dialog(self):
        self.id("add").click()
        self.id("urls").send_keys("ftp://example.com/x")
        self.id("add-button").click()
        self.wait(lambda: "http" in self.id("add-error").text, "the error")
        self.js("arguments[0].value = ''", self.id("urls"))
        self.id("add-close").click()

    def check_pause_and_resume(self):
        name = f"pause-{RUN}.bin"
        self.add(self.url(f"8M/{name}?total-rate=2M"))
        self.wait(lambda: self.state(name) == "Running", "running")
        self.select(name)
        self.id("pause").click()
        self.wait(lambda: self.state(name) == "Paused", "paused")
        self.wait(lambda: self.id("resume").is_enabled(), "the button Resume")
        self.id("resume").click()
        self.wait(lambda: f"{name} completed" in self.id("notice").text, "completed", 60)

    def check_order_changes_by_keyboard(self):
        names = [f"order-{letter}-{RUN}.bin" for letter in "abc"]
        self.add("\n".join(self.url(f"1M/{name}") for name in names), paused=True)
        self.select(names[2])
        shown = "return [...document.querySelectorAll('#grid-body .title')].map((e) => e.textContent).filter((t) => t.startsWith('order-'))"
        served = lambda: [e["url"].rsplit("/")[-1] for e in self.api("/downloads")["downloads"] if "order-" in e["url"]]
        ActionChains(self.driver).key_down(Keys.ALT).send_keys(Keys.ARROW_UP).send_keys(Keys.ARROW_UP).key_up(Keys.ALT).perform()
        wanted = [names[2], names[0], names[1]]
        self.wait(lambda: served() == wanted, "the order of the service")
        self.wait(lambda: self.js(shown) == wanted, "the order of the page")
        self.id("move-down").click()
        self.wait(lambda: served() == [names[0], names[2], names[1]], "the order after Down")

    def check_cancel_asks_first(self):
        name = f"order-a-{RUN}"
        self.select(name)
        self.id("cancel").click()
        self.wait(lambda: self.id("confirm-dialog").is_displayed(), "the question")
        self.contrast("confirmation")
        self.names("confirmation")
        self.id("confirm-no").click()
        assert self.row(name)
        self.id("cancel").click()
        self.id("confirm-delete").click()
        self.id("confirm-yes").click()
        self.wait(lambda: not self.row(name), "the row leaves")

    def check_killed_service_is_shown_and_its_download_finishes(self):
        name = f"kill-{RUN}.bin"
        self.add(self.url(f"16M/{name}?total-rate=2M"))
        percent = lambda: int((self.row(name).find_element(By.CSS_SELECTOR, ".percent").text or "0 %").split()[0])
        self.wait(lambda: self.row(name) and percent() >= 10, "some progress")
        self.id("add").click()
        typed = self.url(f"1M/typed-{RUN}.bin")
        self.id("urls").send_keys(typed)
        self.run(self.arguments.kill)
        self.wait(lambda: self.id("connection-text").text == "Disconnected", "Disconnected")
        self.wait(lambda: "trying again in" in self.id("countdown").text, "the countdown")
        self.contrast("disconnected")
        self.submit()
        self.wait(lambda: "cannot be reached" in self.id("add-error").text, "the error")
        assert self.id("urls").get_attribute("value") == typed, "the text is lost"
        self.run(self.arguments.start)
        self.wait(lambda: self.id("connection-text").text == "Connected", "Connected", 60)
        assert self.id("urls").get_attribute("value") == typed, "the text is lost"
        self.submit()
        self.wait(lambda: self.row(f"typed-{RUN}"), "the row")
        assert self.served().count(f"typed-{RUN}.bin") == 1
        self.wait(lambda: f"{name} completed" in self.id("notice").text, "completed", 60)
        self.view("history")
        self.wait(lambda: self.ended(name), "the history")
        self.view("queue")

    def check_hostile_names_and_messages_are_text(self):
        self.add(self.url("1M/x.bin"), paused=True, out=f"{RUN}{ATTACK}{BIDI}")
        self.wait(lambda: self.row(f"{RUN}{ATTACK}{BIDI_SAFE}"), "the name as text")
        quoted = urllib.parse.quote(f"path-{RUN}{ATTACK}{BIDI}")
        self.api("/downloads", {"downloads": [{"url": self.url(f"1M/{quoted}")}], "paused": True})
        self.wait(lambda: self.row(f"path-{RUN}{ATTACK}{BIDI_SHOWN}"), "the name of the URL's path as text")
        target = urllib.parse.quote(f"x{ATTACK}:1", safe="")
        self.api("/downloads", {"downloads": [
            {"url": self.url(f"1M/message-{RUN}{ATTACK}?redirect=302:{target}".replace("<", "%3C").replace(">", "%3E").replace(" ", "%20"))},
            {"url": self.url(f"1M/{quoted}"), "options": {"checksum": "sha256=" + "1" * 64}}]})
        self.wait(lambda: self.state(f"message-{RUN}") == "Failed", "the message")
        self.row(f"{RUN}{ATTACK}").find_element(By.CSS_SELECTOR, ".title").click()
        self.wait(lambda: self.id("detail-title").text == f"{RUN}{ATTACK}{BIDI_SAFE}", "the details")
        self.row(f"message-{RUN}").find_element(By.CSS_SELECTOR, ".title").click()
        self.wait(lambda: self.id("detail-error").text, "the error in the details")
        assert "\u202e" not in self.js("return document.body.textContent"), "a bidirectional control is shown"
        self.assert_no_script_ran()
        self.contrast("details")
        self.names("details")
        self.id("detail-close").click()

    def check_url_of_another_scheme_is_no_link(self):
        bad = self.js("return [...document.querySelectorAll('a[href]')].map((a) => a.href).filter((h) => !/^https?:/.test(h))")
        assert not bad, bad

    def drop(self, name, text):
        """Chooses a file in the dialog, as a drop does."""
        self.js(
            "const data = new DataTransfer(); data.items.add(new File([arguments[1]], arguments[0]));"
            "dispatchEvent(new DragEvent('drop', {dataTransfer: data, cancelable: true}))", name, text)
        self.wait(lambda: self.id("add-dialog").is_displayed(), "the dialog")

    def check_metalink_is_read_safely(self):
        page = '<?xml version="1.0"?>{}<metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="{}"><size>1048576</size>' \
            '<hash type="sha-256">{}</hash><url priority="2">http://localhost:1/b</url><url priority="1">{}</url></file></metalink>'
        good, url = f"meta-{RUN}.bin", self.url("1M/m.bin")
        for name, doctype, problem in (
            ("../../etc/x", "", "not allowed"), ("/etc/x", "", "not allowed"), (".bashrc", "", "not allowed"),
            ("a&#x202e;b", "", "not allowed"), (good, "<!DOCTYPE metalink [<!ENTITY a 'b'>]>", "document type"),
        ):
            self.drop("x.meta4", page.format(doctype, name, "0" * 64, url))
            self.wait(lambda: problem in self.id("add-error").text, f"the refusal of {name}")
        self.drop("x.meta4", page.format("", good, "0" * 64, "javascript:alert(1)").replace("http://localhost:1/b", "ftp://x/y"))
        self.wait(lambda: "no http or https URL" in self.id("add-error").text, "the refusal of other schemes")
        self.drop("x.meta4", page.format("", good, "0" * 64, url))
        self.wait(lambda: good in self.id("metalink-files").text, "the file")
        self.contrast("the dialog")
        self.names("the dialog")
        if not self.id("add-paused").is_selected():
            self.id("add-paused").click()
        self.id("add-button").click()
        self.wait(lambda: self.row(good), "the row")
        entry = next(e for e in self.api("/downloads")["downloads"] if e["path"].endswith(good))
        assert entry["url"] == url and entry["mirrors"] == ["http://localhost:1/b"], entry
        self.assert_no_script_ran()

    def check_list_with_mirrors(self):
        name = f"list-{RUN}.bin"
        self.drop("list.txt", f"# a comment\n{self.url('1M/' + name)}\thttp://localhost:1/mirror\n")
        self.wait(lambda: name in self.id("urls").get_attribute("value"), "the list")
        self.id("add-button").click()
        self.wait(lambda: self.row(name), "the row")
        entry = next(e for e in self.api("/downloads")["downloads"] if name in e["url"])
        assert entry["mirrors"] == ["http://localhost:1/mirror"], entry

    def check_texts_have_contrast(self):
        self.add(self.url(f"50M/contrast-{RUN}.bin?total-rate=1M"))
        self.wait(lambda: self.state(f"contrast-{RUN}") == "Running", "running")
        self.select(f"contrast-{RUN}")
        self.contrast("queue")
        self.driver.find_element(By.CSS_SELECTOR, "#grid-body .selected .title").click()
        self.wait(lambda: "segment" in self.id("segment-text").text, "the map of segments")
        self.contrast("details of a running file")
        self.resize(320, 640)
        self.contrast("narrow details")
        self.id("detail-close").click()
        self.contrast("narrow queue")
        self.wait(lambda: self.js("return document.documentElement.scrollWidth <= innerWidth"), "a page 320 px wide")
        self.resize(1280, 800)
        for name in ("history", "limits"):
            self.view(name)
            self.wait(lambda: self.js("return document.querySelector(arguments[0])", f"#{name}-rows tr, #{name}-fields input"), name)
            self.contrast(name)
            self.resize(320, 640)
            self.contrast(f"narrow {name}")
            self.wait(lambda: self.js("return document.documentElement.scrollWidth <= innerWidth"), f"{name}, 320 px wide")
            self.resize(1280, 800)
        self.view("queue")
        self.resize(320, 640)
        self.id("add").click()
        self.contrast("narrow dialog")
        assert self.js("return arguments[0].scrollWidth <= arguments[0].clientWidth", self.id("add-dialog")), "the dialog, 320 px wide"
        self.id("add-close").click()
        self.resize(1280, 800)

    def check_every_control_has_a_name(self):
        for name in ("history", "limits", "queue"):
            self.view(name)
            self.wait(lambda: self.id(f"view-{name}").is_displayed(), name)
            self.names(name)

    def check_every_control_is_reached_by_keyboard_and_shows_the_focus(self):
        wanted = set(self.js(
            "return [...document.querySelectorAll('button:enabled, a[href], input:enabled, [tabindex=\"0\"]')]"
            ".filter((e) => e.checkVisibility()).map((e) => e.id || e.className)"))
        reached = set()
        # Also through the window's own controls.
        for _ in range(2 * len(wanted) + 10):
            if wanted <= reached:
                break
            ActionChains(self.driver).send_keys(Keys.TAB).perform()
            name, style, width = self.js(
                "const e = document.activeElement, s = getComputedStyle(e); return [e.id || e.className, s.outlineStyle, parseFloat(s.outlineWidth)]")
            if name:
                assert style != "none" and width >= 2, f"the focus of {name} is not visible"
            reached.add(name)
        assert wanted <= reached, wanted - reached

    def check_limits_and_held_reason(self):
        self.view("limits")
        field = lambda: self.driver.find_element(By.NAME, "limit-rate")
        self.wait(field, "the fields")
        field().send_keys("nonsense", Keys.ENTER)
        self.wait(lambda: "must be" in self.id("limits-error").text, "the error")
        self.contrast("an error of the limits")
        field().clear()
        hour = (time.localtime().tm_hour + 12) % 24
        self.driver.find_element(By.NAME, "between").send_keys(f"{hour:02}:00-{hour:02}:01", Keys.ENTER)
        self.wait(lambda: "outside the allowed hours" in self.id("held").text, "the reason")
        self.contrast("held")
        self.wait(lambda: self.id("limits-saved").text == "Saved.", "saved")
        self.driver.find_element(By.NAME, "between").clear()
        self.driver.find_element(By.NAME, "between").send_keys(Keys.ENTER)
        self.wait(lambda: not self.id("held").is_displayed(), "no reason")
        assert self.api("/limits") == {}
        self.view("queue")

    def check_thousand_rows(self):
        number = 1000
        self.fill(number)
        grid = self.id("grid")
        count = lambda: self.js("return document.querySelectorAll('#grid-body [role=row]').length")
        self.wait(lambda: self.row("many-0000"), "the first row")
        assert count() < 60, count()
        self.js("arguments[0].scrollTop = arguments[0].scrollHeight", grid)
        self.wait(lambda: self.row("many-0999"), "the last row")
        last = self.row("many-0999")
        assert last.get_attribute("aria-rowindex") == str(number + 1)
        assert self.js(
            "const [a, b] = [...arguments].map((e) => e.getBoundingClientRect()); return a.bottom <= b.bottom + 1 && a.top >= b.top", last, grid)
        assert count() < 60, count()
        grid.send_keys(Keys.HOME)
        self.wait(lambda: self.row("many-0000"), "the first row after Home")
        grid.send_keys(Keys.END)
        self.wait(lambda: self.js("return document.getElementById(arguments[0].getAttribute('aria-activedescendant'))"
                                  "?.textContent.includes('many-0999')", grid), "the last row after End")
        indices = self.js("return [...document.querySelectorAll('#grid-body [role=row]')].map((e) => +e.getAttribute('aria-rowindex'))")
        assert indices == sorted(indices), "the elements are not in the order of the rows"

    def check_list_above_one_mebibyte_is_added_in_order(self):
        self.clear()
        self.api("/downloads", {"paused": True, "downloads": [{"url": self.url("1M/middle")}]})
        lists = {name: [f"{name}-{i:04}" for i in range(4000)] for name in ("front", "back")}
        for name, names in lists.items():
            text = "".join(f"{self.url('1M/' + each)}?pad={'x' * 300}\n" for each in names)
            assert len(text) > 1 << 20
            self.drop("list.txt", text)
            self.wait(lambda: len(self.js("return document.getElementById('urls').value")) == len(text), "the list", 60)
            # Screen readers report the progress.
            self.js(
                "window.progress = []; new MutationObserver(() => window.progress.push(arguments[0].textContent))"
                ".observe(arguments[0], {childList: true})", self.id("add-progress"))
            self.submit(first=name == "front")
            self.closed(f"all of {name}")
            shown = [text for text in self.js("return window.progress") if text]
            assert len(shown) > 4 and shown == sorted(shown, key=lambda t: int(t.split()[0].replace(",", ""))), shown
            self.wait(lambda: "4,000 downloads added" in self.id("notice").text, "the result")
        assert self.served() == lists["front"] + ["middle"] + lists["back"], "another order"
        self.wait(lambda: self.id("grid").get_attribute("aria-rowcount") == "8002", "all rows")

    def check_refused_line_stays_with_those_after_it(self):
        self.clear()
        for first in (False, True):
            names = [f"line-{i:04}" for i in range(3000)]
            lines = [f"{self.url('1M/' + name)}?pad={'x' * 200}" for name in names]
            lines[2000] = "http://127.0.0.1:0/port"
            self.drop("list.txt", "\n".join(lines))
            self.wait(lambda: len(self.id("urls").get_attribute("value")) > 500_000, "the list", 60)
            self.submit(first=first)
            self.wait(lambda: "not added" in self.id("add-error").text, "the refusal", 120)
            text = self.id("add-error").text
            left = lines[:2001] if first else lines[2000:]
            assert self.id("urls").get_attribute("value").split("\n") == left, "another text"
            for part in (f"{3000 - len(left):,} of 3,000 downloads added", f"Line {2001 if first else 1}: ", "port", f"{len(left):,} are not added"):
                assert part in text, f"{part!r} is not in {text!r}"
            selected = self.js("const e = arguments[0]; return e.value.slice(e.selectionStart, e.selectionEnd)", self.id("urls"))
            assert selected == lines[2000], f"{selected!r} is selected"
            self.contrast("a refused line")
            self.names("a refused line")
            assert self.served() == (names[2001:] if first else names[:2000]), "another part"
            self.js(
                "arguments[0].value = arguments[0].value.replace('http://127.0.0.1:0/port', arguments[1]);"
                "arguments[0].dispatchEvent(new Event('input'))", self.id("urls"), self.url("1M/line-2000"))
            self.submit(first=first)
            self.closed("the rest")
            assert self.served() == names, "another order"
            self.clear()

    def check_lost_answer_adds_nothing_twice(self):
        self.clear()
        names = [f"lost-{i:04}" for i in range(3000)]
        self.drop("list.txt", "\n".join(f"{self.url('1M/' + name)}?pad={'x' * 200}" for name in names))
        self.wait(lambda: len(self.id("urls").get_attribute("value")) > 500_000, "the list", 60)
        # The first piece is sent twice, as browsers do when a connection ends early. The service adds the second one, but
        # the page gets no answer until `isLost` is false.
        self.js("""
            let posts = 0;
            window.isLost = false;
            window.fetchReal = fetch;
            window.fetch = async (path, options) => {
              if (path === '/v1/events') return fetchReal(path, options);
              if (isLost) throw new TypeError('lost');
              const response = await fetchReal(path, options);
              if (options.method !== 'POST') return response;
              if (++posts === 1) return fetchReal(path, options);
              isLost = posts === 2;
              if (isLost) throw new TypeError('lost');
              return response;
            }""")
        self.submit()
        self.wait(lambda: "cannot be reached" in self.id("add-error").text, "the error", 60)
        assert "none is added twice" in self.id("add-error").text, self.id("add-error").text
        left = self.id("urls").get_attribute("value").count("\n") + 1
        added = len(self.served())
        assert 0 < added < 3000 and 3000 - left < added, f"{left} left, {added} added"
        self.js("window.isLost = false")
        self.submit()
        self.closed("the rest")
        self.js("window.fetch = window.fetchReal")
        assert self.served() == names, "another order, or some twice"

    def check_stopped_list_goes_on(self):
        self.clear()
        names = [f"stop-{i:04}" for i in range(4000)]
        self.drop("list.txt", "\n".join(f"{self.url('1M/' + name)}?pad={'x' * 300}" for name in names))
        self.wait(lambda: len(self.id("urls").get_attribute("value")) > 1 << 20, "the list", 60)
        self.js(
            "new MutationObserver((_, observer) => { observer.disconnect(); document.activeElement.click(); })"
            ".observe(arguments[0], {childList: true})", self.id("add-progress"))
        self.submit()
        self.wait(lambda: "stopped" in self.id("add-error").text, "the end", 60)
        added = len(self.served())
        assert 0 < added < 4000, added
        assert self.id("urls").get_attribute("value").count("\n") + 1 == 4000 - added
        self.submit()
        self.closed("the rest")
        assert self.served() == names, "another order"

    def check_long_list_is_fetched_once_a_second_and_not_when_hidden(self):
        self.fill(1000)
        fetches = lambda: self.js("return window.fetches")
        self.js("""
            window.fetches = 0;
            window.fetchReal = fetch;
            window.fetch = (path, options) => {
              fetches += path === '/v1/downloads' && options.method === 'GET';
              return fetchReal(path, options);
            }""")
        start = time.monotonic()
        ids = [e["id"] for e in self.api("/downloads")["downloads"]]
        for i in range(30):
            self.api("/downloads/move", {"ids": [ids[-1]], "to": i % 2})
            time.sleep(0.1)
        self.wait(lambda: fetches() >= 1, "the list")
        time.sleep(1)
        assert fetches() <= time.monotonic() - start + 1, fetches()
        self.js("Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})")
        time.sleep(1.5)
        before = fetches()
        self.api("/downloads", {"paused": True, "first": True, "downloads": [{"url": self.url("1M/unseen")}]})
        time.sleep(2.5)
        assert fetches() == before, "a hidden page has fetched the list"
        self.js("delete document.hidden; window.fetch = window.fetchReal; document.dispatchEvent(new Event('visibilitychange'))")
        self.id("grid").send_keys(Keys.HOME)
        self.wait(lambda: self.row("unseen"), "the row")

    def check_place_in_the_list_and_focus_are_kept(self):
        self.fill(20)
        current = lambda: self.js(
            "return document.getElementById(document.getElementById('grid').getAttribute('aria-activedescendant'))?.ariaRowIndex")
        self.id("grid").send_keys(Keys.HOME, *[Keys.ARROW_DOWN] * 5)
        self.wait(lambda: current() == "7", "the sixth row")
        self.js("arguments[0].focus()", self.id("remove"))
        ActionChains(self.driver).send_keys(Keys.ENTER).perform()
        self.wait(lambda: self.id("confirm-dialog").is_displayed(), "the question")
        self.id("confirm-yes").send_keys(Keys.ENTER)
        self.wait(lambda: self.id("grid").get_attribute("aria-rowcount") == "20", "the row leaves")
        self.wait(lambda: self.driver.switch_to.active_element == self.id("grid"), "the focus on the list")
        self.wait(lambda: "1 file removed" in self.id("notice").text, "the result")
        ActionChains(self.driver).send_keys(Keys.ARROW_DOWN).perform()
        self.wait(lambda: current() == "7", "the row that has its place")
        self.clear()

    def check_no_script_ran_and_no_violation(self):
        self.assert_no_script_ran()
        self.log += self.driver.get_log("browser")
        texts = [e["message"] for e in self.log]
        bad = [t for t in texts if "Content Security Policy" in t or "Uncaught" in t]
        assert not bad, bad[:3]

    # The run

    def main(self):
        self.clear()
        checks = [getattr(self, name) for name in vars(PageTest) if name.startswith("check_")]
        for check in checks:
            if self.arguments.only and self.arguments.only not in check.__name__:
                if check.__name__ not in ("check_wrong_secret_is_refused", "check_secret_signs_in"):
                    continue
            title = check.__name__.removeprefix("check_").replace("_", " ")
            start = time.monotonic()
            try:
                check()
                print(f"ok      {title} ({time.monotonic() - start:.1f} s)", flush=True)
            except Exception as error:  # Each check is reported, whatever goes wrong in it.
                self.failures += 1
                print(f"FAILED  {title}: {str(error).strip() or type(error).__name__}", flush=True)
                traceback.print_exc(file=sys.stderr)
                if self.arguments.screenshots:
                    self.driver.save_screenshot(f"{self.arguments.screenshots}/{check.__name__}.png")
        self.clear()
        self.driver.quit()
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", required=True, help="the page's URL")
    parser.add_argument("--secret", required=True, help="the service's secret")
    parser.add_argument("--origin", required=True, help="the URL of segdl-origin, as the service reaches it")
    parser.add_argument("--kill", required=True, help="a command that kills the service")
    parser.add_argument("--start", required=True, help="a command that starts it again and returns")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--chromedriver", default="/usr/bin/chromedriver")
    parser.add_argument("--screenshots", help="a directory for a picture of each failure")
    parser.add_argument("--only", help="only checks whose name contains this")
    sys.exit(PageTest(parser.parse_args()).main())


if __name__ == "__main__":
    main()
