"""Prints what the reference reader of the format says of files: one JSON object {name: "" or the error}.

    verdicts.py DIR
"""

import json
import os
import sys

from safetensors import safe_open

verdicts = {}
for name in sorted(os.listdir(sys.argv[1])):
    try:
        with safe_open(os.path.join(sys.argv[1], name), framework="np") as f:
            f.keys()
        verdicts[name] = ""
    except Exception as e:  # its errors have no common type
        verdicts[name] = str(e) or type(e).__name__
print(json.dumps(verdicts))
