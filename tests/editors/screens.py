"""Screens of an editor in a terminal, with the program and profile of `perflens demo`.

Usage: screens.py NAME COMMAND…     in a folder with logstats.go and its profile, cpu.pb.gz

The headless scripts know what an editor holds; this sees that it gets drawn, and leaves the screen
for people to look at.
"""

import pathlib
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from terminal import Checks, Terminal, fail_on_exception

NAME, COMMAND = sys.argv[1], sys.argv[2:]
QUIT = ["Escape", ":", "q", "a", "!", "Enter"] if NAME.startswith("neovim") else ["C-x", "C-c"]


def run(checks):
    editor = Terminal(shlex.join(COMMAND), columns=120, rows=62)
    try:
        # The hottest line of the demo; its cost is that of what it calls.
        hot = "digits := regexp.MustCompile("
        seen = lambda screen: any(hot in line and "% " in line.split(hot)[1] for line in screen.splitlines())
        checks.check("the demo is lit", editor.wait(seen), editor.screen())
        # Signs of the plug-in and the package: a block before the hottest line.
        if NAME.endswith(("-plugin", "-package")):
            signed = lambda screen: any(hot in line and line.startswith("█") for line in screen.splitlines())
            checks.check("the demo has signs", editor.wait(signed), editor.screen())
        # Lenses come in an answer of their own.
        if NAME.startswith("neovim"):
            checks.check("the demo has lenses", editor.wait(lambda screen: "function " in screen), editor.screen())
        editor.save(f"{NAME}-demo")
        editor.keys(*QUIT)
        checks.check("it quits", editor.wait(lambda screen: not screen.strip(), 10), editor.screen())
    finally:
        editor.close()


fail_on_exception(Checks(NAME.replace("-", " ")), run)
