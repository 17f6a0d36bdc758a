"""How long `import minidl` takes beyond NumPy's own import: the median of fresh processes, in seconds.

Byte code is cached, as it is after an installation.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

CODE = "import numpy, time; t = time.perf_counter(); import minidl; print(time.perf_counter() - t)"


def main() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times = [float(subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True,
                                  env=environment).stdout) for _ in range(16)][1:]
    print(f"import minidl beyond numpy: median {statistics.median(times):.3f} s, worst {max(times):.3f} s (bar 0.3 s)")


if __name__ == "__main__":
    main()
