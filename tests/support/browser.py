"""A real browser without a screen: Chromium, as Qt for Python brings it (the extra ``browser``).

It runs in a process of its own, so that neither its threads nor a crash of it get into the tests.
Clicks and keys are those of the window system, not calls of a page's own functions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

FLAGS = "--no-sandbox --disable-gpu --disable-background-networking --disable-quic"
PATIENCE = 60.0  # seconds for one answer


def _environment(scheme: str) -> dict[str, str]:
    colours = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
    return {
        **os.environ,
        "QT_QPA_PLATFORM": "offscreen",
        "QT_QUICK_BACKEND": "software",
        "QTWEBENGINE_CHROMIUM_FLAGS": f"{FLAGS} {colours}",
    }


class Browser:
    """Chromium with one page.

    Skips the test where Chromium cannot start at all: it is not installed, or a library of the
    system that it needs is not there.
    """

    def __init__(self, *, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        # Not a pipe: one that nobody reads may fill up.
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 closed by __exit__
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(width), str(height)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env=_environment(scheme),
            text=True,
        )
        greeting = self._read()
        if greeting.strip() != "ready":
            reason = (self.close().strip().splitlines() or ["it said nothing"])[-1]
            pytest.skip(f"no browser: {reason}")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def close(self) -> str:
        """Close the browser, if it is open; what it complained about."""
        if self._complaints.closed:
            return self._said
        try:
            self._process.communicate(timeout=10)  # without a next line it comes to its end
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._complaints.seek(0)
        self._said = self._complaints.read()
        self._complaints.close()
        return self._said

    def _ask(self, command, *arguments):
        self._process.stdin.write(json.dumps([command, *arguments]) + "\n")
        self._process.stdin.flush()
        line = self._read()
        if not line:
            raise RuntimeError(f"the browser died:\n{self.close()}")
        return json.loads(line)

    def _read(self) -> str:
        """The next line; a browser that hangs is ended, and says nothing."""
        watchdog = threading.Timer(PATIENCE, self._process.kill)
        watchdog.start()
        line = self._process.stdout.readline()
        watchdog.cancel()
        return line

    def open(self, path: Path) -> None:
        """Open a page from the disk, and wait until it is complete."""
        assert self._ask("open", str(path)), f"{path} could not be loaded"

    def evaluate(self, expression: str):
        """The value of a JavaScript expression, through JSON."""
        answer = self._ask("evaluate", expression)
        assert "error" not in answer, answer["error"]
        return answer.get("value")

    def click(self, selector: str) -> None:
        """Click into the middle of an element, which is scrolled into view."""
        x, y = self.evaluate(
            "(() => {"
            f"  const element = document.querySelector({json.dumps(selector)});"
            "  element.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});"
            "  const box = element.getBoundingClientRect();"
            "  return [box.x + box.width / 2, box.y + box.height / 2];"
            "})()"
        )
        self._ask("click", round(x), round(y))

    def press(self, key: str) -> None:
        """Press a key by Qt's name of it: "Right", "Home", "Space" ..."""
        self._ask("press", key)

    def console(self) -> list[str]:
        """What was written to the console so far, errors of the page included."""
        return self._ask("console")

    def screenshot(self, path: Path) -> None:
        """A picture of what the window shows."""
        self._ask("screenshot", str(path))


class Window:
    """What runs in the other process."""

    def __init__(self, width: int, height: int) -> None:
        from PySide6.QtWebEngineCore import QWebEnginePage, QWebEngineProfile
        from PySide6.QtWebEngineWidgets import QWebEngineView
        from PySide6.QtWidgets import QApplication

        messages = self.messages = []

        class Page(QWebEnginePage):
            def javaScriptConsoleMessage(self, level, message, line, source):
                messages.append(f"{level.name}: {message} (line {line})")

        self.app = QApplication(["browser"])
        self.profile = QWebEngineProfile()  # keeps nothing on the disk
        self.view = QWebEngineView()
        self.page = Page(self.profile, self.view)
        self.view.setPage(self.page)
        self.view.resize(width, height)
        self.view.show()

    def serve(self) -> None:
        """Do what the tests ask for, one line of JSON after another."""
        commands = (self.open, self.evaluate, self.click, self.press, self.screenshot, self.console)
        by_name = {command.__name__: command for command in commands}
        _say("ready")
        for line in sys.stdin:
            command, *arguments = json.loads(line)
            _say(json.dumps(by_name[command](*arguments)))
        self.view.setPage(None)  # a page goes before its profile
        self.page.deleteLater()
        self.app.processEvents()

    def open(self, path):
        from PySide6.QtCore import QUrl

        def start(done):
            self.page.loadFinished.connect(done)
            self.page.load(QUrl.fromLocalFile(path))

        loaded = self._wait(start)
        self.page.loadFinished.disconnect()
        return loaded

    def evaluate(self, expression):
        script = (
            f"(() => {{ try {{ return JSON.stringify({{value: ({expression})}}); }}"
            " catch (error) { return JSON.stringify({error: String(error)}); } })()"
        )
        return json.loads(self._wait(lambda done: self.page.runJavaScript(script, 0, done)))

    def click(self, x, y):
        from PySide6.QtCore import QPoint, Qt
        from PySide6.QtTest import QTest

        self._settle(100)  # until what was scrolled is where it seems to be
        target = self.view.focusProxy() or self.view
        QTest.mouseClick(target, Qt.MouseButton.LeftButton, pos=QPoint(x, y))
        self._settle(100)

    def press(self, key):
        from PySide6.QtCore import Qt
        from PySide6.QtTest import QTest

        QTest.keyClick(self.view.focusProxy() or self.view, getattr(Qt.Key, f"Key_{key}"))
        self._settle(100)

    def screenshot(self, path):
        self._settle(400)
        return self.view.grab().save(path)

    def console(self):
        return self.messages

    def _wait(self, start):
        """Run the event loop until what was started calls back."""
        from PySide6.QtCore import QEventLoop

        loop, result = QEventLoop(), []
        start(lambda value: (result.append(value), loop.quit()))
        if not result:
            loop.exec()
        return result[0]

    def _settle(self, milliseconds):
        from PySide6.QtCore import QTimer

        self._wait(lambda done: QTimer.singleShot(milliseconds, lambda: done(None)))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    Window(int(sys.argv[1]), int(sys.argv[2])).serve()
