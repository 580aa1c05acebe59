"""What the scripts for editors in a terminal share: a tmux of their own, and checks."""

import json
import os
import pathlib
import subprocess
import sys
import time

SCREENS = pathlib.Path(os.environ["PERFLENS_SCREENS"])
EXPECTED = json.loads(pathlib.Path(os.environ["PERFLENS_EXPECTED"]).read_text())


def example(name):
    """A file that editors/ gives people for their configuration."""
    return (pathlib.Path(os.environ["PERFLENS_EXAMPLES"]) / name).read_text()


class Checks:
    def __init__(self, title):
        self.title = title

    def check(self, name, ok, detail=""):
        """A line for the runner; `detail` says what was there instead."""
        after = "" if ok else ": " + " ⏎ ".join(str(detail).splitlines())
        print(f"{'ok' if ok else 'FAILED'} {self.title}: {name}{after}", flush=True)
        return ok


class Terminal:
    """A program on a screen, by way of tmux."""

    def __init__(self, command, columns=110, rows=36):
        self.socket = f"perflens-{os.getpid()}"
        # Without the first line tmux holds an Escape back to see whether a key follows.
        config = pathlib.Path(f"{self.socket}.tmux")
        config.write_text("set -sg escape-time 0\nset -g status off\nset -g default-terminal tmux-256color\n")
        self.tmux("-f", config, "new-session", "-d", "-e", "COLORTERM=truecolor", "-x", str(columns), "-y", str(rows), command)
        config.unlink()

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-L", self.socket, *arguments], capture_output=True, text=True).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def lines(self):
        return self.screen().splitlines()

    def keys(self, *keys):
        """Types keys by tmux's names, one call each."""
        for key in keys:
            self.tmux("send-keys", key)
            if key == "Escape":
                # Editors take Escape and another key right behind it for Alt and that key.
                time.sleep(0.3)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def wait(self, condition, seconds=20):
        """Until `condition(screen)`; returns whether it came."""
        deadline = time.monotonic() + seconds
        while True:
            if condition(self.screen()):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)

    def save(self, name):
        """Leaves the screen as text, and with its colours for `less -R`."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        (SCREENS / f"{name}.txt").write_text(self.screen())
        (SCREENS / f"{name}.ansi").write_text(self.tmux("capture-pane", "-p", "-e"))

    def close(self):
        self.tmux("kill-server")


def labels(screen, source, expected):
    """{number of the line in `source`: what stands behind its code on the screen}, for its lines in `expected`."""
    found = {}
    for number in expected:
        code = source[int(number) - 1].strip()
        for line in screen.splitlines():
            if code in line:
                found[number] = " ".join(line.split(code, 1)[1].split())
    return found


def fail_on_exception(checks, function):
    """Runs `function(checks)`; prints `done` if it came to its end."""
    try:
        function(checks)
    except Exception as problem:  # noqa: BLE001: whatever it is, the run must say so
        checks.check("the script", False, repr(problem))
        raise
    print("done")
    sys.stdout.flush()
