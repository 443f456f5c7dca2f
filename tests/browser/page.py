#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

"""The web page in a real browser: its looks, each button, the keyboard, hostile names, an outage.

usage: page.py DASHBOARD CHROMIUM CHROMEDRIVER [FOLDER]

The browser knows nothing of Redis: what it has done is checked by a plain client. With FOLDER, the
screenshots go there.
"""

import contextlib
import hashlib
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
from support import Program, eventually, private_redis  # noqa: E402

from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.options import Options  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

HOSTILE = "<img src=x onerror=\"window.hacked=1\">\u202egpj.exe"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]


class Browser:
    """Finds things on the page as a person does: by what they say."""

    def __init__(self, chromium, chromedriver, folder):
        self.folder = folder
        options = Options()
        options.binary_location = chromium
        for flag in [*FLAGS, f"--user-data-dir={folder}/profile"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(chromedriver), options=options)
        self.driver.execute_cdp_cmd("Page.setDownloadBehavior",
                                    {"behavior": "allow", "downloadPath": folder})

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def looks(self, scheme, width=1240, height=800):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def go(self, route):
        self.run("location.hash = arguments[0]", route)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])]"
                        ".filter(node => node.checkVisibility()).map(node => node.innerText)", selector)

    def saying(self, selector, text):
        """The visible element with just this text, once it is there."""
        found = []

        def there():
            found[:] = self.run(
                "return [...document.querySelectorAll(arguments[0])].filter(node =>"
                " node.checkVisibility() && node.innerText.trim() === arguments[1])", selector, text)
            return found

        eventually(there)
        return found[0]

    def click(self, selector, text):
        self.saying(selector, text).click()

    def sees(self, selector, *texts):
        eventually(lambda: self.texts(selector) == list(texts))

    def row(self, name):
        """The row of a queue on the first page."""
        found = []

        def there():
            found[:] = self.run("return [...document.querySelectorAll('tbody tr')].filter(row =>"
                                " row.querySelector('bdi').textContent.startsWith(arguments[0]))", name)
            return found

        eventually(there)
        return found[0]

    def cells(self, name):
        return self.run("return [...arguments[0].cells].map(cell => cell.innerText)", self.row(name))

    def keys(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self):
        return self.run("return document.activeElement")

    def picture(self, name):
        if len(sys.argv) > 4:
            self.driver.save_screenshot(f"{sys.argv[4]}/{name}.png")


@contextlib.contextmanager
def browser_on(link):
    with tempfile.TemporaryDirectory(prefix="orizuru-browser-") as folder:
        browser = Browser(sys.argv[2], sys.argv[3], folder)
        try:
            browser.looks("light")
            browser.driver.get(link)
            yield browser
        finally:
            browser.driver.quit()


def paused(redis, queue):
    return redis.command("EXISTS", f"orizuru:{{{queue}}}:paused") == 1


def fill(redis):
    redis.command("SADD", "orizuru:queues", "orders", "empty", HOSTILE)
    redis.command("LPUSH", HOSTILE, "<script>window.hacked=1</script>\u202e")
    redis.command("LPUSH", "orders", *(f"order {number}" for number in range(120)))
    redis.command("LPUSH", "orizuru:{orders}:unack", "rejected order")
    redis.command("LPUSH", "orizuru:{orders}:suspects", "suspected order")
    blamed = hashlib.sha1(b"suspected order").hexdigest()
    redis.command("HSET", "orizuru:{orders}:recoveries", blamed, 2)


def check_token(browser, link):
    """Without it the page has no data, and asks for it; it does not stay in the address."""
    browser.run("sessionStorage.clear()")
    browser.driver.get(link.split("#")[0])
    browser.saying("h1", "Which token?")
    browser.all("input")[0].send_keys("wrong-wrong-wrong-wrong", Keys.ENTER)
    browser.saying("h1", "Which token?")
    browser.driver.get("about:blank")
    browser.driver.get(link)
    browser.row("orders")
    assert browser.run("return location.hash") == "#/"
    assert browser.run("return document.cookie") == ""


def check_hostile_name(browser):
    cells = browser.cells("<img")
    shown = "<img src=x onerror=\"window.hacked=1\">\\u{202e}gpj.exe"
    assert cells[0].startswith(shown), cells
    browser.row("<img").find_element("css selector", "a").click()
    browser.sees("h1", shown)
    browser.sees("td:first-child", "<script>window.hacked=1</script>\\u{202e}")
    browser.all("tbody tr")[0].click()
    browser.sees("pre", "<script>window.hacked=1</script>\\u{202e}")
    browser.click("button", "Close")
    assert browser.run("return window.hacked") is None
    assert not browser.all("main img, main script, dialog img, dialog script")
    browser.go("#/")


def right_edges(browser):
    return browser.run("return [innerWidth, document.documentElement.scrollWidth, ...[...document"
                       ".querySelectorAll('table, dl, .row, dialog[open]')].filter(node => node"
                       ".checkVisibility()).map(node => node.getBoundingClientRect().right)]")


def check_looks(browser):
    """By the system's colours, and nothing goes beyond the edge of a phone."""
    papers = []
    for scheme, width, height in ("light", 1240, 760), ("dark", 1240, 760), ("dark", 375, 760):
        browser.looks(scheme, width, height)
        name = scheme if width > 375 else "phone"
        for room, route in {"": "#/", "-queue": "#/queue/orders/waiting"}.items():
            browser.go(route)
            eventually(lambda: len(browser.all("tbody tr")) > 2)
            inside, scrolled, *edges = right_edges(browser)
            assert edges and max(scrolled, *edges) <= inside, (name, route, inside, scrolled, edges)
            browser.picture(name + room)
        browser.all("tbody tr")[0].click()
        browser.saying("h2", "Message")
        inside, scrolled, *edges = right_edges(browser)
        assert max(scrolled, *edges) <= inside, (name, inside, scrolled, edges)
        browser.picture(name + "-message")
        browser.keys(Keys.ESCAPE)
        papers.append(browser.run("return getComputedStyle(document.body).backgroundColor"))
    assert papers == ["rgb(255, 255, 255)", "rgb(18, 20, 22)", "rgb(18, 20, 22)"], papers
    browser.looks("light")
    browser.go("#/")


def check_pause(browser, redis):
    for queue in "orders", HOSTILE:
        name = queue[:4]
        for word, state in ("Pause", True), ("Resume", False):
            button = browser.row(name).find_element("css selector", "button")
            assert button.text == word
            button.click()
            eventually(lambda: paused(redis, queue) == state)
            eventually(lambda: button.text != word)
            assert ("paused" in browser.cells(name)[0]) == state


def check_clicks_under_polling(browser, redis):
    """A button that is pressed before an update and released after it is clicked."""
    pushing = threading.Event()

    def push():
        while not pushing.wait(0.05):
            redis.command("LPUSH", "orders", "more")

    row = browser.row("orders")
    button = row.find_element("css selector", "button")
    waiting = browser.cells("orders")[1]
    thread = threading.Thread(target=push)
    thread.start()
    try:
        ActionChains(browser.driver).click_and_hold(button).perform()
        eventually(lambda: browser.cells("orders")[1] != waiting)
        ActionChains(browser.driver).release().perform()
    finally:
        pushing.set()
        thread.join()
    eventually(lambda: paused(redis, "orders"))
    assert browser.row("orders") == row
    eventually(lambda: button.text == "Resume")
    button.click()
    eventually(lambda: not paused(redis, "orders"))
    redis.command("LREM", "orders", 0, "more")


def open_message(browser, text):
    browser.saying("td:first-child", text).click()
    browser.saying("h2", "Message")


def leaves(browser, text):
    eventually(lambda: text not in browser.texts("td:first-child"))


def check_steps(browser, redis):
    waiting = lambda: redis.command("LRANGE", "orders", 0, -1)[::-1]  # noqa: E731
    browser.row("orders").find_element("css selector", "a").click()
    browser.saying("h1", "orders")

    open_message(browser, "order 3")
    browser.sees("pre", "order 3")
    browser.click("button", "Hex")
    browser.sees("pre", "0000  6f 72 64 65 72 20 33                             order 3")
    browser.click("button", "Download")
    file = pathlib.Path(browser.folder) / "payload"
    eventually(lambda: file.exists() and file.read_bytes() == b"order 3")
    browser.click("button", "Run now")
    eventually(lambda: waiting()[0] == b"order 3")
    eventually(lambda: browser.texts("td:first-child")[0] == "order 3")

    open_message(browser, "order 5")
    browser.click("button", "Remove")
    browser.click("button", "Keep")
    browser.click("button", "Remove")
    assert b"order 5" in waiting()
    browser.saying("button", "Keep")
    browser.click("button", "Remove")
    eventually(lambda: b"order 5" not in waiting())
    leaves(browser, "order 5")
    assert len(waiting()) == 119

    open_message(browser, "order 6")
    browser.all("dialog input")[0].send_keys("a&b #1", Keys.ENTER)
    eventually(lambda: redis.command("LRANGE", "a&b #1", 0, -1) == [b"order 6"])
    leaves(browser, "order 6")
    assert len(waiting()) == 118

    open_message(browser, "order 7")
    assert redis.command("LREM", "orders", 1, "order 7") == 1
    browser.click("button", "Run now")
    browser.saying("p", "It is no longer there: somebody else was faster.")
    browser.keys(Keys.ESCAPE)
    assert len(waiting()) == 117

    browser.click("a", "More →")
    browser.saying("span", "51 to 100")
    browser.click(".tabs a", "Rejected")
    open_message(browser, "rejected order")
    browser.click("button", "Run now")
    eventually(lambda: b"rejected order" in waiting())
    browser.saying("p", "Nothing here.")

    browser.saying("span", "no workers · 1 suspected")
    browser.click(".tabs a", "Suspected")
    browser.sees("td:nth-child(2)", "for 2 deaths")
    open_message(browser, "suspected order")
    browser.saying("dd", "Suspected")
    browser.saying("dd", "for 2 deaths")
    browser.click("button", "Run now")
    eventually(lambda: waiting()[0] == b"suspected order")
    browser.saying("p", "Nothing here.")

    # msgpack [2, payload, reason, time], as consumers write it
    entry = b"\x94\x02\xc6\0\0\0\x01%c\xc6\0\0\0\x03bad\xcf\0\0\1\x90\0\0\0\0"
    redis.command("LPUSH", "orizuru:{orders}:dead", *(entry % name for name in b"xyz"))
    browser.click(".tabs a", "Dead")
    browser.sees("td:first-child", "z", "y", "x")
    browser.sees("td:nth-child(2)", "bad", "bad", "bad")
    open_message(browser, "y")
    browser.click("button", "Run now")
    eventually(lambda: waiting()[-1] == b"y")
    browser.saying("button", "Run all")
    browser.click("button", "Remove all")
    browser.saying("span", "Remove all 2 dead messages for ever?")
    browser.click("button", "Keep")
    browser.click("button", "Remove all")
    assert redis.command("LLEN", "orizuru:{orders}:dead") == 2
    browser.saying("button", "Keep")
    browser.click("button", "Remove all")
    eventually(lambda: redis.command("LLEN", "orizuru:{orders}:dead") == 0)
    browser.saying("p", "Nothing here.")

    check_errors(browser, redis, waiting)

    # Very many are removed in parts, with their number so far.
    for _ in range(10):
        redis.command("LPUSH", "orizuru:{orders}:dead", *[entry % b"z"] * 4000)
    browser.saying("button", "Remove all").click()
    browser.saying("button", "Keep")
    browser.click("button", "Remove all")
    eventually(lambda: browser.texts("#live")[0].endswith(" removed …"))
    eventually(lambda: redis.command("LLEN", "orizuru:{orders}:dead") == 0)
    browser.saying("p", "Nothing here.")

    browser.all("main input")[-1].send_keys("no such job", Keys.ENTER)
    browser.saying("span", "It is in none of the places.")
    browser.click(".tabs a", "Workers")
    browser.saying("p", "No worker is registered.")
    browser.click("header a", "Workers")
    browser.saying("h1", "Workers")
    browser.click("header a", "Queues")


def check_errors(browser, redis, waiting):
    """The dead with an error run again, as many as the page has said, and no others."""
    def die(name, reason, when=0):
        redis.command("LPUSH", "orizuru:{orders}:dead",
                      b"\x94\x02\xc6\0\0\0\x01%c\xc6\0\0\0%c%s\xcf%s"
                      % (name, len(reason), reason, when.to_bytes(8, "big")))
    for name in b"abc":
        die(name, b"no such user: %c" % name)
    die(ord("t"), b"time-out")
    browser.sees("td:first-child", "t", "c", "b", "a")
    box = browser.all("main input")[0]
    box.send_keys("Such user")
    browser.sees("td:first-child", "c", "b", "a")
    browser.click("button", "Run all")
    browser.saying("span", "Run all 3 with the error “Such user”?")
    for scheme, width in ("light", 1240), ("dark", 375):
        browser.looks(scheme, width, 760)
        inside, scrolled, *edges = right_edges(browser)
        assert max(scrolled, *edges) <= inside, (width, inside, scrolled, edges)
        browser.picture(f"errors-{scheme}")
    browser.looks("light")
    die(ord("z"), b"no such user: z", time.time_ns() // 1_000_000)  # after the question
    browser.click("button", "Run all")
    eventually(lambda: waiting()[-3:] == [b"a", b"b", b"c"])
    browser.sees("td:first-child", "z")
    assert browser.all("main input")[0].get_attribute("value") == "Such user"
    box.send_keys("x")
    browser.saying("p", "No error has this text.")
    assert "Run all" not in browser.texts("button")
    for _ in "Such userx":
        box.send_keys(Keys.BACKSPACE)
    browser.sees("td:first-child", "z", "t")
    redis.command("DEL", "orizuru:{orders}:dead")
    browser.saying("p", "Nothing here.")


def check_many_queues(browser, redis):
    """A page shows 50, and a filter finds the others; what it asks for stays small."""
    names = [f"customer-{number}" for number in range(1000, 1240)]
    redis.command("SADD", "orizuru:queues", *names)
    redis.command("LPUSH", "customer-1234", "a")
    browser.go("#/")
    browser.saying("span", "1 to 50 of 243")
    assert len(browser.all("tbody tr")) == 50
    browser.click("button", "More →")
    browser.saying("span", "51 to 100 of 243")
    browser.row("customer-1050")
    browser.picture("many-queues")
    browser.click("button", "← Back")
    browser.saying("span", "1 to 50 of 243")
    box = browser.all("main input")[0]
    for letter in "MER-123":
        box.send_keys(letter)
    eventually(lambda: len(browser.all("tbody tr")) == 10)
    assert browser.focused() == box
    eventually(lambda: browser.texts(".numbers dd")[:4] == ["1", "0", "0", "0"])
    browser.run("performance.clearResourceTimings()")
    browser.row("customer-1234").find_element("css selector", "a").click()
    browser.saying("h1", "customer-1234")
    browser.run("history.back()")  # the filter is in the address
    eventually(lambda: len(browser.all("tbody tr")) == 10)
    assert browser.all("main input")[0].get_attribute("value") == "MER-123"
    browser.all("main input")[0].send_keys("x")
    browser.saying("p", "No queue has this in its name.")
    browser.go("#/")
    browser.saying("span", "1 to 50 of 243")
    eventually(lambda: asked(browser) > 6)
    largest = browser.run("return Math.max(...performance.getEntriesByType('resource').map("
                          "entry => entry.encodedBodySize))")
    assert largest < 32 * 1024, largest
    redis.command("SREM", "orizuru:queues", *names)
    eventually(lambda: len(browser.all("tbody tr")) == 3)


def check_waits(browser, redis):
    """What waits for other jobs: behind keys, and in groups; queues without have no tab for it."""
    browser.go("#/queue/empty/waiting")
    browser.sees(".tabs a", "Waiting", "In hand", "Scheduled", "Rejected", "Suspected", "Dead", "Workers")
    redis.command("RPUSH", f"orizuru:{{orders}}:key:{HOSTILE}", "0123456789abcdef", "next")
    redis.command("ZADD", "orizuru:{orders}:keyed", 1, HOSTILE, -1, "")
    redis.command("ZADD", "orizuru:{orders}:groups", 9e15, "0" * 32)
    redis.command("HSET", "orizuru:{orders}:group:" + "0" * 32, "left", 3, "jobs", 1200, "failed", 2,
                  "made", 1, "to", "reports")
    browser.go("#/queue/orders/keys")
    browser.sees("tbody td", "<img src=x onerror=\"window.hacked=1\">\\u{202e}gpj.exe", "1")
    eventually(lambda: browser.texts("dd")[0].endswith(" + 1"))
    browser.all("tbody tr")[0].click()
    browser.saying("#live", "Its job that is out was not found.")
    browser.click(".tabs a", "Groups")
    eventually(lambda: browser.texts("tbody td")[:4] == ["0" * 32, "waiting", "3 of 1,200", "2"])
    assert browser.texts("tbody td")[6] == "reports"
    browser.picture("groups")
    redis.command("DEL", "orizuru:{orders}:keyed", "orizuru:{orders}:groups")
    browser.sees("p.empty", "Nothing here.")
    browser.go("#/")
    assert browser.run("return window.hacked") is None


def check_keyboard(browser):
    browser.go("#/")
    browser.row("orders")
    browser.run("document.activeElement.blur(); document.querySelector('.brand').focus()")
    for _ in range(20):
        browser.keys(Keys.TAB)
        if browser.focused().text == "orders":
            break
    assert browser.focused().text == "orders"
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.keys(Keys.ENTER)
    browser.saying("h1", "orders")
    eventually(lambda: len(browser.all("tbody tr")) > 2)
    browser.run("document.querySelector('.tabs a:last-child').focus()")
    browser.keys(Keys.TAB)
    row = browser.focused()
    assert row.tag_name == "tr"
    browser.keys(Keys.ENTER)
    browser.saying("h2", "Message")
    assert browser.focused().text == "Close"
    browser.keys(Keys.ESCAPE)
    eventually(lambda: not browser.all("dialog[open]"))
    assert browser.focused() == row


def asked(browser):
    return browser.run("return performance.getEntriesByType('resource').filter(entry =>"
                       " entry.name.includes('/api/')).length")


def check_rest(browser):
    """Nothing is asked while a dialog is open."""
    browser.all("tbody tr")[0].click()
    browser.saying("h2", "Message")
    before = asked(browser)
    time.sleep(2.5)  # longer than it waits between two questions
    assert asked(browser) == before
    browser.keys(Keys.ESCAPE)
    eventually(lambda: asked(browser) > before)


def check_outage(browser, redis):
    browser.go("#/")
    browser.saying("#live", "live")
    redis.kill()
    browser.saying("#live", "away")
    assert browser.texts("#trouble")[0].startswith("Redis does not answer: ")
    assert len(browser.all("tbody tr")) == 3  # as they were
    redis.start()
    redis.command("SADD", "orizuru:queues", "afterwards")
    browser.row("afterwards")
    browser.saying("#live", "live")
    assert not browser.texts("#trouble")


def main():
    with private_redis() as redis:
        fill(redis)
        with Program(sys.argv[1], redis.address, "127.0.0.1:0") as program:
            link = program.line()
            with browser_on(link) as browser:
                began = time.monotonic()
                for name, check in {
                    "token": lambda: check_token(browser, link),
                    "hostile name": lambda: check_hostile_name(browser),
                    "looks": lambda: check_looks(browser),
                    "pause": lambda: check_pause(browser, redis),
                    "clicks under polling": lambda: check_clicks_under_polling(browser, redis),
                    "steps": lambda: check_steps(browser, redis),
                    "many queues": lambda: check_many_queues(browser, redis),
                    "waits": lambda: check_waits(browser, redis),
                    "keyboard": lambda: check_keyboard(browser),
                    "rest": lambda: check_rest(browser),
                    "outage": lambda: check_outage(browser, redis),
                }.items():
                    check()
                    print(f"{time.monotonic() - began:5.1f} s: {name}", flush=True)
                # But for the tokens that were wrong on purpose, and what Redis' absence caused.
                log = [entry["message"] for entry in browser.driver.get_log("browser")]
                strange = [line for line in log if " 401 " not in line and " 503 " not in line]
                assert not strange, strange


if __name__ == "__main__":
    main()
