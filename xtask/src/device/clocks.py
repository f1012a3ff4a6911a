"""Clock, power and temperature of the GPU while something runs, as nvidia-smi tells them."""

import contextlib
import statistics
import subprocess
import threading

FIELDS = ("clocks.sm", "power.draw", "temperature.gpu")
NAMES = ("sm_megahertz", "watts", "celsius")
PAUSE = 0.1  # seconds between two readings
PATIENCE = 20  # seconds that a reading may take


def read(gpu):
    """One reading: a number, or None if this GPU does not tell it, for each field."""
    command = ["nvidia-smi", f"--id={gpu}", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    words = [word.strip() for word in done.stdout.split(",")]
    if done.returncode != 0 or len(words) != len(FIELDS):
        raise RuntimeError(f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[:200]}")
    return [number(word) for word in words]


def number(word):
    try:
        return float(word)
    except ValueError:
        return None


class Clocks:
    """Readings of one GPU; `failure` says why there are none."""

    def __init__(self, gpu):
        self.gpu, self.failure = gpu, None

    @contextlib.contextmanager
    def during(self):
        """Reads again and again until the end; the dictionary that this gives is filled then."""
        found, readings, ended = {}, [], threading.Event()

        def watch():
            while self.failure is None:
                try:
                    readings.append(read(self.gpu))
                except Exception as error:  # a machine without it, or one that denies it
                    self.failure = f"nvidia-smi: {type(error).__name__}: {error}"
                if ended.wait(PAUSE):
                    break

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            ended.set()
            thread.join()
            found["readings"] = len(readings)
            for name, values in zip(NAMES, zip(*readings)):
                values = [value for value in values if value is not None]
                if values:
                    found[name] = {"least": min(values), "median": statistics.median(values), "most": max(values)}
