"""Drives Helix on the workspace of tests/editors/workspace, in the current folder.

Usage: test.py HX
"""

import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from terminal import EXPECTED, Checks, Terminal, example, fail_on_exception, labels

HX = sys.argv[1]
VERSION = subprocess.run([HX, "--version"], capture_output=True, text=True).stdout.split()[1]
NAME = "helix-" + ".".join(VERSION.split(".")[:2])
SOURCE = pathlib.Path("src/main.rs").read_text().splitlines()
CONFIG = pathlib.Path(os.environ["XDG_CONFIG_HOME"]) / "helix"


SUMS = pathlib.Path("../sums/sums.c")


def start(languages, place="src/main.rs:14:9", folder=".", change=lambda text: text, columns=110):
    CONFIG.mkdir(exist_ok=True)
    (CONFIG / "languages.toml").write_text(change(example(f"helix/{languages}.toml")))
    (CONFIG / "config.toml").write_text(example("helix/config.toml"))
    return Terminal(f"cd {folder} && exec {HX} -v --log helix.log {place}", columns)


def quit(hx, checks, name):
    hx.keys("Escape", ":")
    hx.type("q!")
    hx.keys("Enter")
    checks.check(name, hx.wait(lambda screen: not screen.strip(), 10), hx.screen())
    hx.close()


def errors():
    """Of the log; that Debian has no grammars for Helix is none of ours."""
    log = pathlib.Path("helix.log").read_text().splitlines()
    return "\n".join(line for line in log if "[ERROR]" in line and "helix_core::syntax" not in line)


def run(checks):
    hx = start("languages")
    try:
        drive(hx, checks)
        checks.check("no error in its log", not errors(), errors())
        quit(hx, checks, "it quits")
    finally:
        hx.close()

    # rust-analyzer stands for any server with hints of its own; here it is a second perflens.
    beside = pathlib.Path("bin/rust-analyzer")
    beside.parent.mkdir()
    beside.write_text("#!/bin/sh\nexec perflens lsp\n")
    beside.chmod(0o755)
    os.environ["PATH"] = f"{beside.parent.resolve()}:{os.environ['PATH']}"
    hx = start("languages-beside")
    try:
        becomes(hx, checks, "hints beside another server", EXPECTED["after"])
        quit(hx, checks, "it quits with two servers")
    finally:
        hx.close()

    subprocess.run(["perflens", "trust", SUMS.parent], check=True, capture_output=True)
    # Of another language, and without a profile.
    of_c = lambda text: "".join(line for line in text.replace('"rust"', '"c"').splitlines(True) if not line.startswith("config"))
    hx = start("languages", f"{SUMS.name}:17:1", SUMS.parent, of_c, columns=170)
    try:
        profile(hx, checks)
        quit(hx, checks, "it quits after that")
    finally:
        hx.close()


def profile(hx, checks):
    """Profiles a test by its action, and shows what came out as Helix can: after an edit."""
    time.sleep(1)
    hx.keys("Space", "a")
    offered = lambda screen: "profile this function (test_sums)" in screen
    checks.check("a test can be profiled by an action", hx.wait(offered), hx.screen())
    hx.save(f"{NAME}-profile")
    hx.keys("Enter")
    # Progress tells of samples as well; Helix asks for hints once, after the edit.
    told = lambda screen: "are set-up" in screen.splitlines()[-1]
    checks.check("it tells what was measured", hx.wait(told, 90), hx.screen())
    hx.keys("Escape", "g", "e", "o")
    hx.type("// last")
    hx.keys("Escape", "1", "7", "g", "g")
    hot = lambda screen: any("/* hot */" in line and re.search(r"6\d\.\d%", line) for line in screen.splitlines())
    checks.check("its hot line has two thirds", hx.wait(hot), hx.screen())
    hx.save(f"{NAME}-profiled")


def becomes(hx, checks, name, wanted):
    seen = lambda screen: labels(screen, SOURCE, EXPECTED["before"])
    ok = hx.wait(lambda screen: seen(screen) == wanted)
    return checks.check(name, ok, f"wanted {wanted}, got {seen(hx.screen())}")


def drive(hx, checks):
    before, after = EXPECTED["before"], EXPECTED["after"]
    becomes(hx, checks, "hints", before)
    hx.save(f"{NAME}-hints")

    hx.keys("Space", "k")
    checks.check("hover", hx.wait(lambda screen: "50.0%" in screen and "with calls" in screen), hx.screen())
    hx.save(f"{NAME}-hover")
    hx.keys("Escape")

    hx.keys("Space", "a")
    checks.check("code actions", hx.wait(lambda screen: "perflens" in screen), hx.screen())
    hx.save(f"{NAME}-actions")
    hx.keys("Enter")
    checks.check("the first shows the callers of the line", hx.wait(lambda screen: "words::main" in screen, 10), hx.screen())
    hx.keys("Escape")

    hx.keys("Space", "a")
    hx.wait(lambda screen: "for an assistant" in screen)
    hx.keys("Down", "Down", "Enter")
    copied = lambda screen: "**cpu.pb.gz**" in screen and "for-assistant.md" in screen
    checks.check("a text for an assistant is opened as a file", hx.wait(copied, 10), hx.screen())
    hx.save(f"{NAME}-assistant")
    hx.keys("Escape", ":")
    hx.type("buffer-close")
    hx.keys("Enter")
    hx.wait(lambda screen: "fn group" in screen)

    hx.keys(":")
    hx.type("lsp-workspace-command")
    hx.keys("Enter")
    # The list is longer than the screen.
    checks.check("commands are offered", hx.wait(lambda screen: "perflens.openProfile" in screen), hx.screen())
    hx.type("Status")
    checks.check("commands can be searched", hx.wait(lambda screen: "> perflens.showStatus" in screen), hx.screen())
    hx.save(f"{NAME}-commands")
    hx.keys("Escape", ":")
    hx.type("lsp-workspace-command perflens.showStatus")
    hx.keys("Enter")
    checks.check("a command", hx.wait(lambda screen: "2.00s" in screen.splitlines()[-1], 10), hx.screen())
    hx.save(f"{NAME}-status")
    hx.keys("Escape", ":")
    hx.type("lsp-workspace-command perflens.nextHotspot")
    hx.keys("Enter")
    there = lambda screen: any(line.split()[-1:] == ["22:1"] or " 22:" in line for line in screen.splitlines()[-2:])
    checks.check("the next hot spot is the hottest line", hx.wait(there, 10), hx.screen())

    # Before, on and after lines with costs.
    hx.keys("Escape", "9", "g", "g", "O")
    hx.type('let _before = "é 🔥";')
    hx.keys("Escape")
    hx.wait(lambda screen: "_before" in screen)
    becomes(hx, checks, "a line typed above moves the hints", before)
    hx.keys("1", "6", "g", "g", "A")
    hx.type(" // changed")
    hx.keys("Escape")
    becomes(hx, checks, "a changed line loses its hint", {**before, "15": "// changed"})
    hx.save(f"{NAME}-edited")
    hx.keys("u", "u")
    becomes(hx, checks, "after undo they are back", before)

    # Helix knows no refresh request; it asks again after an edit.
    os.rename("after.pb.gz", "cpu.pb.gz")
    hx.keys("g", "e", "o")
    hx.type("// last")
    hx.keys("Escape")
    becomes(hx, checks, "the profile written again, and an edit, change the hints", after)


fail_on_exception(Checks(NAME.replace("-", " ", 1)), run)
