"""Everything that CI runs: `python -m tests`. Arguments go to pytest."""

import subprocess
import sys
import time

STEPS: tuple[tuple[str, ...], ...] = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("basedpyright", "--pythonpath", sys.executable),
)


def main(pytest_arguments: list[str]) -> int:
    pytest = ("pytest", "-n", "2", "-q", *pytest_arguments)
    for step in (*STEPS, pytest):
        started = time.monotonic()
        print(f"--- {' '.join(step)}", flush=True)
        code = subprocess.run([sys.executable, "-m", *step], check=False).returncode
        print(f"--- {step[0]}: {time.monotonic() - started:.0f} s, exit code {code}", flush=True)
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
