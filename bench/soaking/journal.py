"""What happened and when, what was counted, and what should not have happened."""

import threading
import time
from collections import Counter
from pathlib import Path


class Journal:
    """Lines with the time since the beginning, on the screen and in a file; counts by group and name."""

    def __init__(self, file: Path | None):
        self.began = time.monotonic()
        self.file = file.open("w") if file else None
        self.lock = threading.Lock()
        self.counts: dict[str, Counter[str]] = {}
        self.passed = 0
        self.failures: list[str] = []

    def say(self, text: str) -> None:
        seconds = time.monotonic() - self.began
        line = f"{int(seconds) // 60:02}:{seconds % 60:04.1f}  {text}"
        with self.lock:
            print(line, flush=True)
            if self.file:
                print(line, file=self.file, flush=True)

    def count(self, group: str, name: str, amount: int = 1) -> None:
        with self.lock:
            self.counts.setdefault(group, Counter())[name] += amount

    def check(self, holds: bool, what: str) -> bool:
        """A check of the soak; what does not hold is listed at the end."""
        with self.lock:
            if holds:
                self.passed += 1
            else:
                self.failures.append(what)
        if not holds:
            self.say(f"FAILED: {what}")
        return holds
